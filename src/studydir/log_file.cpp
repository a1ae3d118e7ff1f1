// SPDX-License-Identifier: Apache-2.0
#include "studydir/log_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "ranktune/base/utf8.hpp"
#include "storage/file_system.hpp"

namespace ranktune::studydir {
namespace {

char letter(base::LogLevel level) {
    switch (level) {
        case base::LogLevel::debug:
            return 'D';
        case base::LogLevel::info:
            return 'I';
        case base::LogLevel::warning:
            return 'W';
        case base::LogLevel::error:
            return 'E';
    }
    return '?';
}

void append_value(std::string& out, std::string_view value) {
    if (!value.empty() && value.find_first_of(" \"=\\") == std::string_view::npos && base::printable(value) == value) {
        out += value;
        return;
    }
    std::string quoted;
    for (const char c : value) {
        if (c == '"' || c == '\\') quoted += '\\';
        if (c == '\n')
            quoted += "\\n";
        else if (c == '\t')
            base::append_escaped(c, quoted);
        else
            quoted += c;
    }
    out += '"' + base::escaped(quoted) + '"';
}

} // namespace

std::string wall_time_now() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    const auto seconds = static_cast<std::time_t>(ms / 1000);
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char text[40];
    const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(ms % 1000));
    return text;
}

std::string log_line(base::LogLevel level, std::string_view event, const std::vector<base::LogField>& fields) {
    std::string line{letter(level)};
    line += ' ';
    line += event;
    for (const auto& field : fields) {
        line += ' ';
        line += field.key;
        line += '=';
        append_value(line, field.value);
    }
    return line;
}

LogFile::LogFile(const std::string& path, std::vector<base::LogField> always) : always_(std::move(always)) {
    const auto folder = std::filesystem::path(path).parent_path();
    std::error_code ignored; // open() below reports the error
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    fd_ = storage::open_own_file(path, O_WRONLY | O_CREAT | O_APPEND);
}

void LogFile::write(base::LogLevel level, std::string_view event, const std::vector<base::LogField>& fields) {
    append(level, event, fields, "");
}

void LogFile::write_text(std::string_view event, const std::vector<base::LogField>& fields, std::string_view text) {
    append(base::LogLevel::info, event, fields, " | " + std::string(text));
}

void LogFile::append(base::LogLevel level, std::string_view event, const std::vector<base::LogField>& fields,
                     std::string_view rest) {
    std::vector<base::LogField> all = always_;
    all.insert(all.end(), fields.begin(), fields.end());
    std::string line = wall_time_now() + ' ' + log_line(level, event, all);
    line += rest;
    line += '\n';
    [[maybe_unused]] const auto written = ::write(fd_.get(), line.data(), line.size());
}

} // namespace ranktune::studydir
