// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "context.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "trainables/builtin.hpp"

using namespace ranktune;
using testing::Context;

namespace {

const std::string digits = RANKTUNE_JOBS "/digits/digits.h5";
const std::string diabetes = RANKTUNE_JOBS "/diabetes/diabetes.h5";

std::unique_ptr<trainables::Trainable> make() { return trainables::find_trainable("mlp").factory(); }

double value(const trainables::Metrics& metrics, const std::string& name) {
    for (const auto& [key, number] : metrics)
        if (key == name) return number;
    throw base::Error("no metric " + name);
}

} // namespace

TEST_CASE("mlp learns the digits on two ranks", "[trainables]") {
    const auto thrown = testing::on_ranks(2, [](ddp::Collective& group) {
        Context context(group,
                        space::Configuration({{"data", digits}, {"lr", 0.1}, {"hidden", space::Value::List{64}}}));
        const auto mlp = make();
        mlp->setup(context);
        trainables::Metrics metrics;
        for (int epoch = 0; epoch < 8; ++epoch) metrics = mlp->step(context);
        if (value(metrics, "val_accuracy") < 0.95) throw base::Error("val_accuracy below 0.95");
        if (value(metrics, "train_loss") > 0.1) throw base::Error("train_loss above 0.1");
        static_cast<void>(value(metrics, "val_loss"));
    });
    CHECK(thrown == testing::all_well(2));
}

TEST_CASE("mlp recognises a regression task by its targets", "[trainables]") {
    const auto group = ddp::make_self_collective();
    Context context(*group, space::Configuration({{"data", diabetes},
                                                  {"lr", 0.01},
                                                  {"hidden", space::Value::List{32}},
                                                  {"activation", "tanh"},
                                                  {"weight_decay", 0.01}}));
    const auto mlp = make();
    mlp->setup(context);
    trainables::Metrics metrics;
    for (int epoch = 0; epoch < 20; ++epoch) metrics = mlp->step(context);
    CHECK(value(metrics, "val_r2") > 0.3);
    CHECK(value(metrics, "val_rmse") < 70.0);
    CHECK(mlp->owed_buckets().size() == 1);
}

TEST_CASE("mlp gives its matrix library the cores of the rank", "[trainables]") {
    auto* const threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
    if (threads == nullptr) {
        WARN("not shown: only OpenBLAS is asked how many threads it has");
        return;
    }
    const auto group = ddp::make_self_collective();
    Context context(*group, space::Configuration({{"data", digits}}));
    for (const int cpus : {2, 1}) {
        context.cpus = cpus;
        make()->setup(context);
        CHECK(threads() == cpus);
    }
}

TEST_CASE("mlp goes on from a saved state bit by bit", "[trainables]") {
    const auto group = ddp::make_self_collective();
    Context context(*group, space::Configuration({{"data", digits}, {"dropout", 0.2}, {"optimizer", "adamw"}}));
    const auto whole = make();
    whole->setup(context);
    static_cast<void>(whole->step(context));
    study::MemoryState state;
    whole->save(state);
    const auto resumed = make();
    resumed->setup(context);
    resumed->load(state);
    CHECK(resumed->step(context) == whole->step(context));
}

TEST_CASE("the size of mlp's state is known before it runs", "[trainables]") {
    const auto group = ddp::make_self_collective();
    for (const std::string optimizer : {"sgd", "adam"}) {
        for (const auto& data : {digits, diabetes}) {
            Context context(*group,
                            space::Configuration(
                                {{"data", data}, {"hidden", space::Value::List{24, 7}}, {"optimizer", optimizer}}));
            const auto mlp = make();
            mlp->setup(context);
            study::MemoryState state;
            mlp->save(state);
            CHECK(trainables::state_bytes("mlp", context.configuration()) == state.bytes() - 4 * sizeof(std::uint64_t));
        }
    }
    CHECK(!trainables::state_bytes("somebody's", {}));
}

TEST_CASE("mlp refuses what it cannot do with the name of the option", "[trainables]") {
    const auto group = ddp::make_self_collective();
    const auto message_of = [&](std::vector<std::pair<std::string, space::Value>> entries) -> std::string {
        Context context(*group, space::Configuration(std::move(entries)));
        try {
            make()->setup(context);
        } catch (const base::Error& error) {
            return error.what();
        }
        return "nothing was thrown";
    };
    CHECK(message_of({}).find("mlp.data") == 0);
    CHECK(message_of({{"data", "/nowhere.h5"}}).find("/nowhere.h5") != std::string::npos);
    CHECK(message_of({{"data", digits}, {"optimizer", "adm"}}).find("mlp.optimizer") == 0);
    CHECK(message_of({{"data", digits}, {"dropout", 1.0}}).find("mlp.dropout") == 0);
    CHECK(message_of({{"data", digits}, {"hidden", space::Value::List{0}}}).find("mlp.hidden") == 0);
    CHECK(message_of({{"data", digits}, {"batch_size", 0}}).find("mlp.batch_size") == 0);
}
