# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits with PyTorch's DistributedDataParallel.  torchrun --nproc_per_node=2 train.py --lr=0.05"""
import argparse
import os

import h5py
import ranktune
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def samples(path, part):
    with h5py.File(path) as file:
        x, y = file[part]["x"][:], file[part]["y"][:]
    return torch.from_numpy(x).float() / 16, torch.from_numpy(y).long()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="../digits/digits.h5")
    parser.add_argument("--epochs", type=int, default=27)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--batch_size", type=int, default=64, help="over all ranks")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--output", default=ranktune.context().checkpoint_dir or ".", help="folder of the checkpoints")
    parser.add_argument("--resume", default=ranktune.checkpoint(), help="checkpoint to go on from")
    args = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(1)
    train = TensorDataset(*samples(args.data, "train"))
    val_x, val_y = samples(args.data, "val")
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=args.batch_size // dist.get_world_size(), sampler=sampler)
    net = nn.Sequential(nn.Linear(64, args.hidden), nn.ReLU(), nn.Linear(args.hidden, 10))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    epoch = 0
    if args.resume:
        state = torch.load(args.resume)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        optimizer.param_groups[0].update(lr=args.lr, momentum=args.momentum)
        epoch = state["epoch"]

    while epoch < args.epochs:
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = (net(val_x).argmax(1) == val_y).float().mean().item()
        epoch += 1
        checkpoint = os.path.join(args.output, "checkpoint.pt")
        if dist.get_rank() == 0:
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, checkpoint)
        ranktune.report(val_accuracy=accuracy, checkpoint=checkpoint)


if __name__ == "__main__":
    main()
