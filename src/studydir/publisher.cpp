// SPDX-License-Identifier: Apache-2.0
#include "studydir/publisher.hpp"

#include <utility>

#include "ranktune/base/error.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::studydir {

Publisher::Publisher(storage::FileSystem& files, std::string path, std::function<bool()> allowed)
    : files_(files), path_(std::move(path)), allowed_(std::move(allowed)), thread_([this] {
          write();
          return process::Background::when_asked;
      }) {}

void Publisher::publish(std::string text) {
    {
        const std::lock_guard lock(mutex_);
        text_ = std::move(text);
    }
    thread_.ask();
}

void Publisher::write() {
    std::optional<std::string> text;
    {
        const std::lock_guard lock(mutex_);
        text = std::exchange(text_, std::nullopt);
    }
    try {
        if (text && allowed_()) publish_text(files_, path_, *text, false);
    } catch (const base::Error&) { // full disk: the next text may fit, and nothing depends on the file
    }
}

} // namespace ranktune::studydir
