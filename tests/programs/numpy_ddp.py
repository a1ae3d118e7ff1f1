# SPDX-License-Identifier: Apache-2.0
"""jobs/pytorch/train_ranktune.py without PyTorch, for tests of the same flow: softmax regression on the digits, ranks
that average gradients over TCP at MASTER_ADDR:MASTER_PORT, checkpoints by the function form of report()."""
import argparse
import os
import socket
import struct
import time

import h5py
import numpy as np
import ranktune


class Group:
    """The ranks of a trial; rank 0 listens where torch.distributed would."""

    def __init__(self):
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if self.rank == 0:
            with socket.create_server(address) as server:
                server.settimeout(30)
                self.peers = [server.accept()[0] for _ in range(self.size - 1)]
        else:
            self.peers = [self.connect(address)]

    @staticmethod
    def connect(address):
        for _ in range(600):
            try:
                return socket.create_connection(address, timeout=30)
            except ConnectionRefusedError:
                time.sleep(0.05)  # rank 0 is not there yet
        raise TimeoutError(f"nobody listens at {address}")

    @staticmethod
    def receive(peer):
        def exactly(count):
            data = b""
            while len(data) < count:
                part = peer.recv(count - len(data))
                if not part:
                    raise ConnectionError("a rank has left")
                data += part
            return data

        return np.frombuffer(exactly(struct.unpack("<q", exactly(8))[0]))

    @staticmethod
    def send(peer, values):
        data = values.tobytes()
        peer.sendall(struct.pack("<q", len(data)) + data)

    def mean(self, values):
        """The mean over all ranks, the same bits on all of them."""
        flat = np.ascontiguousarray(values, dtype=float).ravel()
        if self.rank == 0:
            total = (flat + sum(self.receive(peer) for peer in self.peers)) / self.size
            for peer in self.peers:
                self.send(peer, total)
        else:
            self.send(self.peers[0], flat)
            total = self.receive(self.peers[0])
        return total.reshape(values.shape)


def samples(path, part):
    with h5py.File(path) as file:
        x, y = file[part]["x"][:] / 16.0, file[part]["y"][:]
    return np.hstack([x, np.ones((len(x), 1))]), y


def gradient(weights, x, y):
    scores = x @ weights
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    share[np.arange(len(y)), y] -= 1
    return x.T @ share / len(y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--batch_size", type=int, required=True, help="over all ranks")
    args = parser.parse_args()
    group = Group()
    train, val = samples(args.data, "train"), samples(args.data, "val")
    weights, start = np.zeros((65, 10)), 0
    if ranktune.checkpoint():
        with np.load(os.path.join(ranktune.checkpoint(), "state.npz")) as state:
            weights, start = state["weights"], int(state["epoch"])
        assert start == ranktune.context().iteration, (start, ranktune.context())

    for epoch in range(start, args.epochs):
        order = np.random.default_rng(epoch).permutation(len(train[1]))
        for first in range(0, len(order), args.batch_size):
            mine = order[first : first + args.batch_size][group.rank :: group.size]
            weights = weights - args.lr * group.mean(gradient(weights, train[0][mine], train[1][mine]))
        accuracy = float((np.argmax(val[0] @ weights, axis=1) == val[1]).mean())

        def save(folder):
            if group.rank == 0:
                np.savez(os.path.join(folder, "state.npz"), weights=weights, epoch=epoch + 1)

        ranktune.report(val_accuracy=accuracy, started_at=start, checkpoint=save)


if __name__ == "__main__":
    main()
