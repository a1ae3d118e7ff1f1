// SPDX-License-Identifier: Apache-2.0
// The environment and messages of programs.

#include <cmath>

#include "process/program/environment.hpp"
#include "process/program/messages.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace ranktune::process {
namespace {

using Metrics = std::vector<std::pair<std::string, double>>;

std::optional<std::string> value_in(const std::vector<std::string>& environment, const std::string& name) {
    std::optional<std::string> found;
    for (const std::string& entry : environment) {
        if (!entry.starts_with(name + "=")) continue;
        CHECK(!found); // no variable twice
        found = entry.substr(name.size() + 1);
    }
    return found;
}

ProgramFacts facts() {
    ProgramFacts facts;
    facts.study = "digits";
    facts.study_directory = "/s";
    facts.trial = base::TrialId{17};
    facts.attempt = base::AttemptId{2};
    facts.seed = 9;
    facts.iterations = 27;
    facts.iteration = 3;
    facts.objective = {"loss", study::Mode::min};
    facts.cpus_per_rank = 4;
    facts.run_id = "digits-17-1.2";
    facts.config_path = "/s/config.json";
    facts.checkpoint_directory = "/s/checkpoint";
    facts.place = {2, 3, 0, 1, 1, 2};
    facts.master_address = "node1";
    facts.master_port = 20100;
    facts.addresses = {"node1:1", "node1:2", "node2:3"};
    return facts;
}

ProgramMessage parse(std::string_view line) {
    std::vector<std::string> unknown;
    auto message = parse_program_message(line, unknown);
    CHECK(unknown.empty());
    return message;
}

ProgramReport report(std::string_view line) { return std::get<ProgramReport>(parse(line)); }

std::string mistake(std::string_view line) {
    return ranktune::testing::error_of<base::FormatError>([&] { return parse(line); });
}

} // namespace

TEST_CASE("a line with lists or objects nested 80,000 deep is refused", "[trainables]") {
    constexpr std::size_t levels = 80'000;
    const auto repeated = [](const std::string& piece) {
        std::string text;
        for (std::size_t i = 0; i < levels; ++i) text += piece;
        return text;
    };
    const std::string lists = std::string(levels, '[') + std::string(levels, ']');
    const std::string objects = repeated("{\"a\":") + "1" + std::string(levels, '}');
    for (const std::string& deep : {lists, objects})
        for (const std::string& line :
             {"{\"report\": {\"loss\": " + deep + "}}", "{\"report\": " + deep + "}", "{\"log\": " + deep + "}",
              "{\"checkpoint\": " + deep + "}", "{\"x\": " + deep + ", \"report\": {}}", deep})
            CHECK(mistake(line).find("more than 64 lists and objects lie inside each other") != std::string::npos);
    // The deepest allowed nesting: the text of a log may be anything.
    const std::string allowed = std::string(63, '[') + std::string(63, ']');
    CHECK(std::get<ProgramLog>(parse("{\"log\": " + allowed + "}")).text == allowed);
    CHECK(mistake("{\"log\": [" + allowed + "]}").find("more than 64") != std::string::npos);
}

TEST_CASE("places in a group count ranks by node", "[trainables]") {
    const std::vector<std::uint64_t> nodes = {7, 7, 5, 7, 5};
    CHECK(place_in_group(nodes, 0) == GroupPlace{0, 5, 0, 3, 0, 2});
    CHECK(place_in_group(nodes, 2) == GroupPlace{2, 5, 0, 2, 1, 2});
    CHECK(place_in_group(nodes, 3) == GroupPlace{3, 5, 2, 3, 0, 2});
    CHECK(place_in_group(nodes, 4) == GroupPlace{4, 5, 1, 2, 1, 2});
    CHECK(place_in_group(std::vector<std::uint64_t>{1}, 0) == GroupPlace{});
}

TEST_CASE("a program gets torchrun's variables and ranktune's", "[trainables]") {
    const std::vector<std::string> inherited = {"PATH=/bin", "RANK=77", "EMPTY="};
    const auto environment = program_environment(inherited, {}, facts());
    const std::vector<std::pair<std::string, std::string>> wanted = {{"PYTHONUNBUFFERED", "1"},
                                                                     {"PATH", "/bin"},
                                                                     {"EMPTY", ""},
                                                                     {"RANK", "2"},
                                                                     {"WORLD_SIZE", "3"},
                                                                     {"LOCAL_RANK", "0"},
                                                                     {"LOCAL_WORLD_SIZE", "1"},
                                                                     {"GROUP_RANK", "1"},
                                                                     {"GROUP_WORLD_SIZE", "2"},
                                                                     {"ROLE_RANK", "2"},
                                                                     {"ROLE_WORLD_SIZE", "3"},
                                                                     {"MASTER_ADDR", "node1"},
                                                                     {"MASTER_PORT", "20100"},
                                                                     {"TORCHELASTIC_RUN_ID", "digits-17-1.2"},
                                                                     {"TORCHELASTIC_RESTART_COUNT", "1"},
                                                                     {"OMP_NUM_THREADS", "4"},
                                                                     {"RANKTUNE_FD", "3"},
                                                                     {"RANKTUNE_STUDY", "digits"},
                                                                     {"RANKTUNE_STUDY_DIR", "/s"},
                                                                     {"RANKTUNE_TRIAL", "17"},
                                                                     {"RANKTUNE_ATTEMPT", "2"},
                                                                     {"RANKTUNE_CONFIG", "/s/config.json"},
                                                                     {"RANKTUNE_SEED", "9"},
                                                                     {"RANKTUNE_ITERATIONS", "27"},
                                                                     {"RANKTUNE_ITERATION", "3"},
                                                                     {"RANKTUNE_CHECKPOINT_DIR", "/s/checkpoint"},
                                                                     {"RANKTUNE_CPUS", "4"},
                                                                     {"RANKTUNE_METRIC", "loss"},
                                                                     {"RANKTUNE_MODE", "min"}};
    for (const auto& [name, value] : wanted) {
        INFO(name);
        CHECK(value_in(environment, name) == value);
    }
    for (const char* name : {"RANKTUNE_CHECKPOINT", "CUDA_VISIBLE_DEVICES", "TF_CONFIG", "JAX_PROCESS_ID"})
        CHECK(value_in(environment, name) == std::nullopt);
}

TEST_CASE("a program may be without torchrun's variables, also without inherited ones", "[trainables]") {
    study::ProgramSpec program;
    program.launcher_variables = false;
    const std::vector<std::string> inherited = {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=n0", "PATH=/bin"};
    const auto environment = program_environment(inherited, program, facts());
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"})
        CHECK(value_in(environment, name) == std::nullopt);
    CHECK(value_in(environment, "OMP_NUM_THREADS") == "4");
    CHECK(value_in(environment, "RANKTUNE_TRIAL") == "17");
    program.env = {{"WORLD_SIZE", "1"}}; // the user's own word is the last
    CHECK(value_in(program_environment(inherited, program, facts()), "WORLD_SIZE") == "1");
}

TEST_CASE("programs that share a GPU are told how much of its memory is theirs", "[trainables]") {
    ProgramFacts shared = facts();
    const std::vector<std::string> inherited = {"TF_FORCE_GPU_ALLOW_GROWTH=false"};
    CHECK(value_in(program_environment(inherited, {}, shared), "RANKTUNE_GPU_SHARE") == std::nullopt);
    shared.gpu_share = 0.25;
    const auto environment = program_environment(inherited, {}, shared);
    CHECK(value_in(environment, "RANKTUNE_GPU_SHARE") == "0.25");
    CHECK(value_in(environment, "XLA_PYTHON_CLIENT_MEM_FRACTION") == "0.1875");
    CHECK(value_in(environment, "TF_FORCE_GPU_ALLOW_GROWTH") == "false"); // the user's own
}

TEST_CASE("launcher variables are not passed on unless requested", "[trainables]") {
    const std::vector<std::string> inherited = {"OMPI_COMM_WORLD_RANK=3",
                                                "OMPI_MCA_btl=tcp",
                                                "PMIX_RANK=3",
                                                "PMI_FD=5",
                                                "PMI2_X=1",
                                                "ORTE_A=1",
                                                "PRTE_A=1",
                                                "I_MPI_HYDRA_X=1",
                                                "MV2_COMM_WORLD_RANK=1",
                                                "HYDI_X=1",
                                                "MPI_LOCALRANKID=1",
                                                "SLURM_JOB_ID=4",
                                                "SLURM_PROCID=3",
                                                "SLURMD_NODENAME=n",
                                                "PALS_X=1",
                                                "RANKTUNE_OLD=1",
                                                "IPATH_NO_BACKTRACE=1",
                                                "HFI_NO_BACKTRACE=1",
                                                "ENVIRONMENT=BATCH",
                                                "MPI4PY_RC_THREADS=1",
                                                "UCX_TLS=tcp",
                                                "NCCL_DEBUG=INFO",
                                                "CUDA_VISIBLE_DEVICES=0"};
    const auto names = [](const std::vector<std::string>& environment) {
        std::vector<std::string> found;
        for (const std::string& entry : environment) {
            const std::string name = entry.substr(0, entry.find('='));
            if (is_launcher_variable(name, entry.substr(name.size() + 1)) && !name.starts_with("RANKTUNE_"))
                found.push_back(name);
        }
        return found;
    };
    const auto plain = program_environment(inherited, {}, facts());
    CHECK(names(plain).empty());
    for (const char* name : {"IPATH_NO_BACKTRACE", "HFI_NO_BACKTRACE", "ENVIRONMENT"})
        CHECK(value_in(plain, name) == std::nullopt);
    const std::vector<std::string> mine = {"ENVIRONMENT=production"};
    CHECK(value_in(program_environment(mine, {}, facts()), "ENVIRONMENT") == "production");
    CHECK(value_in(plain, "RANKTUNE_OLD") == std::nullopt);
    for (const char* name : {"MPI4PY_RC_THREADS", "UCX_TLS", "NCCL_DEBUG", "CUDA_VISIBLE_DEVICES"})
        CHECK(value_in(plain, name).has_value());
    // Settings of users, which no launcher sets.
    for (const std::string name : {"HYDRA_FULL_ERROR", "MPI_HOME", "MPI_ROOT", "MPI_DIR", "OMPI_CC", "OPAL_PREFIX",
                                   "MPICH_GPU_SUPPORT_ENABLED", "MPIR_CVAR_CH4_OFI_ENABLE_HMEM", "MV2_USE_CUDA",
                                   "I_MPI_ROOT", "MPIRUN_OPTIONS", "SALLOC_ACCOUNT", "SBATCH_ACCOUNT", "SLURM_CONF"}) {
        INFO(name);
        const std::vector<std::string> setting = {name + "=1"};
        CHECK(value_in(program_environment(setting, {}, facts()), name) == "1");
    }

    study::ProgramSpec program;
    program.keep_env = {"SLURM_JOB_ID", "PMI_*"};
    CHECK(names(program_environment(inherited, program, facts())) ==
          std::vector<std::string>{"PMI_FD", "SLURM_JOB_ID"});
}

TEST_CASE("the GPU variables of all vendors agree", "[trainables]") {
    const std::vector<std::string> inherited = {"CUDA_VISIBLE_DEVICES=0,1,2,3", "HIP_VISIBLE_DEVICES=0,1",
                                                "ROCR_VISIBLE_DEVICES=0,1,2,3", "GPU_DEVICE_ORDINAL=0,1,2,3",
                                                "ZE_AFFINITY_MASK=0,1,2,3"};
    auto told = facts();
    const auto value = [&](const char* name) { return value_in(program_environment(inherited, {}, told), name); };
    CHECK(value("ROCR_VISIBLE_DEVICES") == "0,1,2,3"); // GPUs unknown: unchanged
    told.visible_devices = "2,3";
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"})
        CHECK(value(name) == "2,3");
    CHECK(value("ROCR_VISIBLE_DEVICES") == std::nullopt); // HIP would number the devices within it
    told.visible_devices = "GPU-5ca1";
    CHECK(value("CUDA_VISIBLE_DEVICES") == "GPU-5ca1");
    for (const char* name : {"ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"})
        CHECK(value(name) == std::nullopt);
    told.visible_devices = ""; // gpus = 0
    CHECK(value("CUDA_VISIBLE_DEVICES") == "");
    for (const char* name : {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"})
        CHECK(value(name) == "-1");
}

TEST_CASE("the folder of ranktune.py comes first in PYTHONPATH, unless the user says otherwise", "[trainables]") {
    study::ProgramSpec program;
    ProgramFacts with = facts();
    with.python_path = "/s/python";
    const auto path = [&](const std::vector<std::string>& inherited) {
        return value_in(program_environment(inherited, program, with), "PYTHONPATH");
    };
    CHECK(path({}) == "/s/python");
    CHECK(path({"PYTHONPATH="}) == "/s/python");
    CHECK(path({"PYTHONPATH=/mine:/yours", "PYTHONPATHS=x"}) == "/s/python:/mine:/yours");
    program.env = {{"PYTHONPATH", "/only"}};
    CHECK(path({"PYTHONPATH=/mine"}) == "/only");
    with.python_path.clear();
    program.env.clear();
    CHECK(path({"PYTHONPATH=/mine"}) == "/mine");
}

TEST_CASE("devices, checkpoints, TF_CONFIG, JAX and the user's own variables are set when known", "[trainables]") {
    study::ProgramSpec program;
    program.tf_config = program.jax = true;
    program.env = {{"OMP_NUM_THREADS", "1"}, {"MINE", "x y"}};
    auto told = facts();
    told.visible_devices = "0,GPU-7";
    told.checkpoint = "/s/checkpoints/17/3-1.1/model.pt";
    const auto environment = program_environment({}, program, told);
    CHECK(value_in(environment, "CUDA_VISIBLE_DEVICES") == "0,GPU-7");
    CHECK(value_in(environment, "RANKTUNE_CHECKPOINT") == "/s/checkpoints/17/3-1.1/model.pt");
    CHECK(value_in(environment, "TF_CONFIG") ==
          R"({"cluster":{"worker":["node1:1","node1:2","node2:3"]},"task":{"type":"worker","index":2}})");
    CHECK(value_in(environment, "JAX_COORDINATOR_ADDRESS") == "node1:20100");
    CHECK(value_in(environment, "JAX_NUM_PROCESSES") == "3");
    CHECK(value_in(environment, "JAX_PROCESS_ID") == "2");
    CHECK(value_in(environment, "OMP_NUM_THREADS") == "1");
    CHECK(value_in(environment, "MINE") == "x y");
}

TEST_CASE("reports are read with every kind of number", "[trainables]") {
    const auto all = report(R"({"report": {"a": 0.5, "b": 3, "c": true, "d": -1e300, "e": false}, "can_save": true,
                               "checkpoint": "/x/y z", "iteration": 5})");
    CHECK(all.metrics == Metrics{{"a", 0.5}, {"b", 3.0}, {"c", 1.0}, {"d", -1e300}, {"e", 0.0}});
    CHECK(all.checkpoint == "/x/y z");
    CHECK(all.can_save);
    CHECK(all.iteration == 5U);
    const auto empty = report(R"({"report": {}})");
    CHECK(empty.metrics.empty());
    CHECK_FALSE(empty.checkpoint);
    CHECK_FALSE(empty.can_save);
    CHECK_FALSE(report(R"({"report": {}, "checkpoint": null})").checkpoint);
}

TEST_CASE("values that are not finite are read in every spelling", "[trainables]") {
    const auto odd = report(R"({"report": {"NaN \" Infinity": 1, "a": NaN, "b": -Infinity, "c": Infinity, "d": "NaN",
                               "e": "-Infinity", "f": null}})");
    REQUIRE(odd.metrics.size() == 7);
    CHECK(odd.metrics[0] == std::pair<std::string, double>{"NaN \" Infinity", 1.0});
    CHECK(std::isnan(odd.metrics[1].second));
    CHECK(odd.metrics[2].second == -HUGE_VAL);
    CHECK(odd.metrics[3].second == HUGE_VAL);
    CHECK(std::isnan(odd.metrics[4].second));
    CHECK(odd.metrics[5].second == -HUGE_VAL);
    CHECK(std::isnan(odd.metrics[6].second));
}

TEST_CASE("other messages, and unknown keys", "[trainables]") {
    CHECK(std::get<ProgramSaved>(parse(R"({"checkpoint": "/a"})")).checkpoint == "/a");
    CHECK(std::get<ProgramLog>(parse(R"({"log": "x\ny"})")).text == "x\ny");
    using What = ProgramFailed::What;
    const auto full = std::get<ProgramFailed>(parse(R"({"failed": "device-memory", "log": "no room"})"));
    CHECK((full.what == What::device_memory && full.text == "no room"));
    CHECK(std::get<ProgramFailed>(parse(R"({"failed": "saving"})")).what == What::saving);
    CHECK(std::get<ProgramFailed>(parse(R"({"failed": "of a later version"})")).what == What::error);
    const auto done = std::get<ProgramDone>(parse(R"({"checkpoint_done": 7})"));
    CHECK((done.pending == 7 && done.error.empty()));
    CHECK(std::get<ProgramDone>(parse(R"({"checkpoint_done": 7, "error": "no room"})")).error == "no room");
    CHECK(std::get<ProgramReport>(parse(R"({"report": {}, "pending": 7})")).pending == 7);
    CHECK_FALSE(std::get<ProgramReport>(parse(R"({"report": {}})")).pending);
    std::vector<std::string> unknown;
    static_cast<void>(parse_program_message(R"({"report": {"a": 1}, "colour": 1})", unknown));
    CHECK(unknown == std::vector<std::string>{"colour"});
}

TEST_CASE("invalid lines are refused, and the error shows their beginning", "[trainables]") {
    CHECK(mistake("hello") == "a line that is no message: 'hello'");
    CHECK(mistake("{\"report\": {\"a\": 1}") == "a line that is no message: '{\"report\": {\"a\": 1}'");
    CHECK(mistake("[1]") == "a line that is no message: '[1]'");
    CHECK(mistake("{}") ==
          "a message without 'report', 'result', 'predicted', 'checkpoint', 'checkpoint_done', "
          "'failed' or 'log': '{}'");
    CHECK(mistake(R"({"report": 3})") == "'report' is not an object: '3'");
    CHECK(mistake(R"({"report": {}, "pending": -1})") == "'pending' is not a number from 0: '-1'");
    CHECK(mistake(R"({"report": {"a": [1]}})") ==
          "the metric 'a' of a report is neither a number, a boolean nor a text: '[1]'");
    CHECK(mistake(R"({"checkpoint": 3})") == "'checkpoint' is not a string: '3'");
    CHECK(mistake("\x01" + std::string(200, 'x')) == "a line that is no message: '?" + std::string(79, 'x') + "...'");
}

TEST_CASE("decisions and configurations are one line of JSON each", "[trainables]") {
    CHECK(decision_line(study::Verb::go_on, 5) == "{\"decision\":\"continue\",\"iteration\":5}\n");
    CHECK(decision_line(study::Verb::pause, 3, "/a b") ==
          "{\"decision\":\"pause\",\"iteration\":3,\"save_to\":\"/a b\"}\n");
    CHECK(decision_line(study::Verb::discard, 3) == "{\"decision\":\"stop\",\"iteration\":3}\n");
    space::Configuration configuration;
    configuration.set("lr", 3.2e-05);
    configuration.set("n", 32);
    configuration.set("sgd.momentum", 0.9);
    configuration.set("sgd.nesterov", true);
    configuration.set("hidden", space::Value(space::Value::List{64, "a"}));
    CHECK(configuration_json(configuration) ==
          "{\"lr\":3.2e-05,\"n\":32,\"sgd\":{\"momentum\":0.9,\"nesterov\":true},\"hidden\":[64,\"a\"]}\n");
}

TEST_CASE("a task and its result are one line of JSON each", "[trainables]") {
    space::Configuration row;
    row.set("x", "0.10");
    CHECK(task_line(base::TrialId{17}, base::AttemptId{2}, 7, row) ==
          "{\"task\":17,\"attempt\":2,\"seed\":7,\"config\":{\"x\":\"0.10\"}}\n");
    std::vector<std::string> unknown;
    const auto message = parse_program_message(
        R"({"result": {"y": 0.5, "ok": true, "word": "w"}, "task": 17, "attempt": 2, "a": 1})", unknown);
    const auto& result = std::get<ProgramResult>(message);
    CHECK(result.metrics == Metrics{{"y", 0.5}, {"ok", 1.0}});
    CHECK(result.texts == std::vector<std::pair<std::string, std::string>>{{"word", "w"}});
    CHECK(unknown == std::vector<std::string>{"a"});
    CHECK(result.task == 17);
    CHECK(result.attempt == 2);
    CHECK(std::holds_alternative<ProgramReady>(parse_program_message(R"({"ready": true})", unknown)));
    for (const char* wrong : {R"({"result": 1})", R"({"result": {}})", R"({"result": {}, "task": 1})"})
        CHECK_THROWS_AS(static_cast<void>(parse_program_message(wrong, unknown)), base::FormatError);
}

TEST_CASE("a batch and its predictions are one line of JSON each", "[trainables]") {
    const ProgramBatch batch{.number = 3,
                             .memory = 1,
                             .first = 1024,
                             .rows = 2,
                             .columns = {{"x", "uint8", {8, 8}, 0}, {"id", "int64", {}, 128}},
                             .y_offset = 192};
    CHECK(
        batch_line(batch) ==
        R"({"batch":3,"memory":1,"first":1024,"rows":2,"columns":[{"name":"x","dtype":"uint8","shape":[8,8],"offset":0},)"
        R"({"name":"id","dtype":"int64","shape":[],"offset":128}],"y":192})"
        "\n");
    std::vector<std::string> unknown;
    const auto message = parse_program_message(
        R"({"predicted": 3, "dtype": "float32", "shape": [2, 10], "class": true, "a": 1})", unknown);
    const auto& predicted = std::get<ProgramPredicted>(message);
    CHECK(predicted.batch == 3);
    CHECK(predicted.type == "float32");
    CHECK(predicted.shape == std::vector<std::uint64_t>{2, 10});
    CHECK(predicted.classifies);
    CHECK(unknown == std::vector<std::string>{"a"});
    const char* const numbers = R"({"predicted": 3, "dtype": "float32", "shape": [2]})";
    CHECK_FALSE(std::get<ProgramPredicted>(parse_program_message(numbers, unknown)).classifies);
    for (const char* wrong :
         {R"({"predicted": "x", "dtype": "float32", "shape": [2]})", R"({"predicted": 3})",
          R"({"predicted": 3, "dtype": 1, "shape": [2]})", R"({"predicted": 3, "dtype": "float32", "shape": [-2]})"})
        CHECK_THROWS_AS(static_cast<void>(parse_program_message(wrong, unknown)), base::FormatError);
}

TEST_CASE("lines arrive in any pieces", "[trainables]") {
    const std::string text = "one\n\ntwo\r\nthree";
    for (std::size_t size = 1; size <= text.size(); ++size) {
        LineBuffer lines;
        std::vector<std::string> got;
        for (std::size_t at = 0; at < text.size(); at += size) {
            lines.add(std::string_view(text).substr(at, size));
            while (auto line = lines.next()) got.push_back(*line);
        }
        CHECK(got == std::vector<std::string>{"one", "", "two"});
        CHECK(lines.rest() == "three");
    }
}

TEST_CASE("a line of a MiB is read and a longer one refused before it ends", "[trainables]") {
    LineBuffer lines;
    lines.add(std::string(LineBuffer::longest, 'x') + "\n");
    CHECK(lines.next()->size() == LineBuffer::longest);
    lines.add(std::string(LineBuffer::longest + 1, 'x'));
    CHECK_THROWS_AS(static_cast<void>(lines.next()), base::FormatError);
}

} // namespace ranktune::process
