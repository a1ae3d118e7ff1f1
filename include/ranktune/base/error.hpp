// SPDX-License-Identifier: Apache-2.0
#pragma once
// Error types. What the caller can do about an error decides its type; the text says what to do next.

#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace ranktune::base {

/// Root of all errors that this library throws on purpose. A violated precondition is not one of them: it asserts.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// The user asked for something impossible: a wrong option, a study that cannot run. Ends the program with exit code 2.
class UsageError : public Error {
  public:
    using Error::Error;
};

/// The operating system refused: carries the path and the error code, so that "no space" can be told from "no such
/// file".
class IoError : public Error {
  public:
    IoError(const std::string& what, std::string path, std::error_code code)
        : Error(what + " '" + path + "': " + code.message()), path_(std::move(path)), code_(code) {}

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::error_code code() const { return code_; }

  private:
    std::string path_;
    std::error_code code_;
};

/// Malformed bytes: a damaged file, an unknown version, a truncated message.
class FormatError : public Error {
  public:
    using Error::Error;
};

} // namespace ranktune::base
