// SPDX-License-Identifier: Apache-2.0
#include "report/export/tfevents.hpp"

#include <string>

#include "support/catch.hpp"

namespace tfevents_test {

using namespace ranktune;
using namespace ranktune::report;

namespace {

std::string hex(const std::string& bytes) {
    constexpr const char* digits = "0123456789abcdef";
    std::string text;
    for (const char c : bytes) {
        text += digits[static_cast<unsigned char>(c) >> 4];
        text += digits[static_cast<unsigned char>(c) & 15];
    }
    return text;
}

} // namespace

// The expected bytes are those of TensorBoard 2.21: its RecordWriter and its protocol buffers.
TEST_CASE("events of TensorBoard are byte for byte those that it writes", "[report]") {
    CHECK(hex(tfevents::file_version(1.5)) ==
          "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
    CHECK(hex(tfevents::scalar(1.5, 300, "loss/val", 0.25)) ==
          "1f00000000000000514b441809000000000000f83f10ac022a110a0f0a086c6f73732f76616c1500"
          "00803e2cab7324");
    CHECK(hex(tfevents::session_start(1.5, {{"lr", 0.5}})) ==
          "5e00000000000000d8b06ebc09000000000000f83f2a530a510a1c5f68706172616d735f2f736573"
          "73696f6e5f73746172745f696e666f42060801120212004a290a270a0768706172616d73121c1a1a"
          "0a0f0a026c72120911000000000000e03f29000000000000f83ff040dce7");
    CHECK(hex(tfevents::session_end(1.5, tfevents::Status::success)) ==
          "4d000000000000003d63d4a609000000000000f83f2a420a400a1a5f68706172616d735f2f736573"
          "73696f6e5f656e645f696e666f42060801120212004a1a0a180a0768706172616d73120d220b0801"
          "11000000000000f83f269fc5d4");
}

TEST_CASE("a hyper-parameter becomes a number, a boolean or a string", "[report]") {
    CHECK(tfevents::plain(3) == space::Value(3.0));
    CHECK(tfevents::plain(true) == space::Value(true));
    CHECK(tfevents::plain("adam") == space::Value("adam"));
    CHECK(tfevents::plain(space::Value::List{64, 32}) == space::Value("[64,32]"));
}

} // namespace tfevents_test
