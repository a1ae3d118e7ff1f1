// SPDX-License-Identifier: Apache-2.0
#include "report/export/tfevents.hpp"

#include <bit>
#include <span>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/utf8.hpp"

namespace ranktune::report::tfevents {
namespace {

template <class T>
std::string little_endian(T value) {
    std::string bytes;
    for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xFF);
    return bytes;
}

std::uint32_t masked_crc(std::string_view bytes) {
    const std::uint32_t crc = base::crc32c(std::as_bytes(std::span(bytes)));
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

/// A protocol buffer that grows field by field.
class Message {
  public:
    Message& number(unsigned field, std::uint64_t value) {
        varint(field << 3);
        varint(value);
        return *this;
    }
    Message& real(unsigned field, double value) {
        varint(field << 3 | 1);
        bytes_ += little_endian(std::bit_cast<std::uint64_t>(value));
        return *this;
    }
    Message& small_real(unsigned field, float value) {
        varint(field << 3 | 5);
        bytes_ += little_endian(std::bit_cast<std::uint32_t>(value));
        return *this;
    }
    Message& text(unsigned field, std::string_view value) {
        varint(field << 3 | 2);
        varint(value.size());
        bytes_ += value;
        return *this;
    }
    Message& message(unsigned field, const Message& value) { return text(field, value.bytes_); }
    [[nodiscard]] const std::string& bytes() const { return bytes_; }

  private:
    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(0x80 | (value & 0x7F));
        bytes_ += static_cast<char>(value);
    }
    std::string bytes_;
};

/// google.protobuf.Value
Message value_message(const space::Value& value) {
    Message message;
    if (value.is_bool()) return message.number(4, value.as_bool() ? 1 : 0);
    if (value.is_number()) return message.real(2, value.as_double());
    return message.text(3, base::as_utf8(value.text()));
}

/// An event of the plugin: a summary without a value, whose metadata hold the data.
std::string plugin_event(double wall_time, std::string_view tag, unsigned kind, const Message& data) {
    const Message plugin_data = Message().message(kind, data); // version 0, the default, is not written
    Message metadata;
    metadata.message(1, Message().text(1, "hparams").text(2, plugin_data.bytes()));
    const Message shape = Message().message(2, Message());           // one dimension of length 0
    const Message tensor = Message().number(1, 1).message(2, shape); // DT_FLOAT
    const Message value = Message().text(1, tag).message(8, tensor).message(9, metadata);
    return framed(Message().real(1, wall_time).message(5, Message().message(1, value)).bytes());
}

} // namespace

std::string framed(std::string_view data) {
    const std::string length = little_endian(static_cast<std::uint64_t>(data.size()));
    std::string record = length + little_endian(masked_crc(length));
    record += data;
    return record + little_endian(masked_crc(data));
}

std::string file_version(double wall_time) {
    return framed(Message().real(1, wall_time).text(3, "brain.Event:2").bytes());
}

std::string scalar(double wall_time, std::int64_t step, std::string_view tag, double value) {
    const Message entry = Message().text(1, tag).small_real(2, static_cast<float>(value));
    return framed(Message()
                      .real(1, wall_time)
                      .number(2, static_cast<std::uint64_t>(step))
                      .message(5, Message().message(1, entry))
                      .bytes());
}

space::Value plain(const space::Value& value) {
    if (value.is_bool() || value.is_string()) return value;
    if (value.is_number()) return value.as_double();
    return value.text();
}

std::string experiment(double wall_time, const std::string& name, const std::vector<HyperParameter>& parameters,
                       const std::vector<std::string>& metrics) {
    Message message;
    message.real(3, wall_time).text(6, base::as_utf8(name));
    for (const HyperParameter& parameter : parameters) {
        Message info;
        info.text(1, base::as_utf8(parameter.name)).number(4, static_cast<std::uint64_t>(parameter.kind));
        if (!parameter.values.empty()) {
            Message list;
            for (const space::Value& value : parameter.values) list.message(1, value_message(value));
            info.message(5, list);
        } else if (parameter.interval) {
            info.message(6, Message().real(1, parameter.interval->first).real(2, parameter.interval->second));
        }
        message.message(4, info);
    }
    for (const std::string& metric : metrics)
        message.message(5, Message().message(1, Message().text(2, base::as_utf8(metric))));
    return plugin_event(wall_time, "_hparams_/experiment", 2, message);
}

std::string session_start(double wall_time, const std::vector<std::pair<std::string, space::Value>>& parameters) {
    Message message;
    for (const auto& [name, value] : parameters)
        message.message(1, Message().text(1, base::as_utf8(name)).message(2, value_message(value)));
    message.real(5, wall_time);
    return plugin_event(wall_time, "_hparams_/session_start_info", 3, message);
}

std::string session_end(double wall_time, Status status) {
    return plugin_event(wall_time, "_hparams_/session_end_info", 4,
                        Message().number(1, static_cast<std::uint64_t>(status)).real(2, wall_time));
}

} // namespace ranktune::report::tfevents
