// SPDX-License-Identifier: Apache-2.0
// Lines over pipes, whose other end may die, or be kept open by others.

#include <array>
#include <csignal>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "head/asktell/line_channel.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"

namespace ranktune::testing {

using head::LineChannel;

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t nobody = 0;

struct Pipe {
    Pipe() {
        std::array<int, 2> ends{};
        REQUIRE(::pipe(ends.data()) == 0);
        out.reset(ends[0]);
        in.reset(ends[1]);
    }
    void write(const std::string& text) const {
        REQUIRE(::write(in.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    }
    storage::FileDescriptor out; ///< what is written to `in`
    storage::FileDescriptor in;
};

/// A process that does nothing.
pid_t idle_child() {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    while (child == 0) ::pause();
    return child;
}

void end(pid_t child) {
    REQUIRE(::kill(child, SIGKILL) == 0);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
}

} // namespace

TEST_CASE("lines arrive whole, and the last ones before the end", "[asktell]") {
    Pipe pipe;
    LineChannel channel(pipe.out.get(), -1, nobody);
    channel.wait(0ms);
    CHECK_FALSE(channel.next());
    pipe.write("one\ntw");
    channel.wait(-1ms);
    CHECK(channel.next() == "one");
    CHECK_FALSE(channel.next());
    pipe.write("o\nthree\nno line");
    pipe.in.reset();
    while (!channel.closed()) channel.wait(-1ms);
    CHECK(channel.next() == "two");
    CHECK(channel.next() == "three");
    CHECK_FALSE(channel.next());
}

TEST_CASE("a line that is too long closes the channel", "[asktell]") {
    const Pipe pipe;
    LineChannel channel(pipe.out.get(), -1, nobody);
    const std::string part(1 << 15, 'x');
    for (int i = 0; i < 40; ++i) {
        pipe.write(part);
        channel.wait(-1ms);
    }
    CHECK_THROWS_AS(channel.next(), base::FormatError);
    CHECK(channel.closed());
    CHECK_FALSE(channel.next());
}

TEST_CASE("the death of the peer closes the channel, although others keep the pipe open", "[asktell]") {
    const Pipe pipe;
    const pid_t peer = idle_child();
    LineChannel channel(pipe.out.get(), -1, static_cast<std::uint64_t>(peer));
    pipe.write("last\n");
    end(peer);
    while (!channel.closed()) channel.wait(-1ms);
    CHECK(channel.next() == "last");
    // As where the kernel watches no process: it is not the parent any more.
    LineChannel unwatched(pipe.out.get(), -1, static_cast<std::uint64_t>(peer));
    unwatched.wait(0ms);
    CHECK(unwatched.closed());
}

TEST_CASE("a channel that nobody reads is closed by a write", "[asktell]") {
    const auto before = std::signal(SIGPIPE, SIG_IGN);
    Pipe pipe;
    LineChannel channel(-1, pipe.in.get(), nobody);
    channel.write("heard");
    CHECK_FALSE(channel.closed());
    pipe.out.reset();
    channel.write("not heard");
    CHECK(channel.closed());
    std::signal(SIGPIPE, before);
}

} // namespace ranktune::testing
