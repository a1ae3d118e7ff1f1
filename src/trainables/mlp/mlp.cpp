// SPDX-License-Identifier: Apache-2.0
// The built-in `mlp`: its options, and a Trainer behind the Trainable interface.

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "data/numbers.hpp"
#include "device/module.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/data/loader.hpp"
#include "ranktune/study/event.hpp"
#include "ranktune/trainables/data.hpp"
#include "ranktune/trainables/gradient_options.hpp"
#include "trainables/blas.hpp"
#include "trainables/builtin.hpp"
#include "trainables/mlp/trainer.hpp"
#include "trainables/options.hpp"
#include "trainables/predict/prediction.hpp"

namespace ranktune::trainables {

namespace {

using Kind = study::OptionInfo::Kind;

std::vector<study::OptionInfo> data_options() {
    return {
        {.name = "data",
         .kind = Kind::path,
         .required = true,
         .description = "HDF5 file with train/x, train/y, val/x, val/y; \"{data.NAME}\": that file of [data]",
         .check = data::dataset_problem},
        {"in_memory_gb",
         Kind::number,
         false,
         "samples of up to so many GiB, as float32, stay in memory; larger data are streamed (16)",
         {},
         0.0,
         1e6},
        {"shuffle_memory_gb", Kind::number, false, "GiB of streamed chunks that batches mix (1)", {}, 0.0, 1e6},
        {"scaling",
         Kind::string,
         false,
         "of the inputs, by the training samples (standard)",
         {"none", "unit", "standard"}},
    };
}

/// All but those of data and gradients.
study::TrainableInfo described() {
    return {
        .name = "mlp",
        .description =
            "multi-layer perceptron on an HDF5 dataset: classifier or regressor, whichever its targets ask for; "
            "one iteration is one epoch",
        .options =
            {
                {"hidden", Kind::integer_list, false, "sizes of the hidden layers ([128])", {}, 1.0, 65536.0},
                {"activation", Kind::string, false, "of the hidden layers (relu)", {"relu", "tanh"}},
                {"dropout", Kind::number, false, "probability that a hidden unit is dropped (0.0)", {}, 0.0, 0.95},
                {"batch_size",
                 Kind::integer,
                 false,
                 "samples of a step, over all ranks of the trial (64)",
                 {},
                 1.0,
                 1e9},
                {"optimizer", Kind::string, false, "update rule (sgd)", {"sgd", "adam", "adamw"}},
                {"lr", Kind::number, false, "learning rate (0.01)", {}, 0.0, {}},
                {"lr_schedule",
                 Kind::string,
                 false,
                 "constant, or cosine: to zero at study.max_iterations (constant)",
                 {"constant", "cosine"}},
                {"weight_decay", Kind::number, false, "L2 penalty; decoupled for adamw (0.0)", {}, 0.0, {}},
                {"momentum", Kind::number, false, "of sgd (0.9)", {}, 0.0, 1.0},
                {"nesterov", Kind::boolean, false, "look ahead along the momentum of sgd (false)"},
                {"beta1", Kind::number, false, "of adam and adamw (0.9)", {}, 0.0, 0.999999},
                {"beta2", Kind::number, false, "of adam and adamw (0.999)", {}, 0.0, 0.9999999},
                {"epsilon", Kind::number, false, "of adam and adamw (1e-8)", {}, 0.0, 1.0},
                {"device",
                 Kind::string,
                 false,
                 "cpu; gpu: the one that the rank was granted; auto: gpu if all ranks of the trial have one (cpu)",
                 {"cpu", "gpu", "auto"}},
                {"precision",
                 Kind::string,
                 false,
                 "of products on a GPU: fp32, tf32 or bf16; parameters, sums and all else are float32 (fp32)",
                 {"fp32", "tf32", "bf16"}},
                {"cuda_graphs", Kind::boolean, false,
                 "a GPU records its work for a batch and replays it: faster for small networks, the same bits (false)"},
            },
        .can_checkpoint = true,
        .any_option = false,
        .metrics = {"train_loss", "val_loss", "val_accuracy", "val_rmse", "val_r2",
                    std::string(study::data_wait_metric), std::string(study::disk_wait_metric),
                    std::string(study::decode_wait_metric)},
        .may_use_gpus = true,
    };
}

/// The state depends on all other options: sizes, inputs, or what the optimizer keeps.
constexpr std::string_view changeable[] = {
    "in_memory_gb", "shuffle_memory_gb", "activation", "dropout", "batch_size", "lr",     "lr_schedule", "weight_decay",
    "momentum",     "nesterov",          "beta1",      "beta2",   "epsilon",    "device", "precision",   "cuda_graphs"};

const study::TrainableInfo& mlp_info() {
    static const study::TrainableInfo info = [] {
        study::TrainableInfo all = described();
        std::ranges::move(data_options(), std::inserter(all.options, all.options.begin()));
        for (study::OptionInfo& option : all.options)
            option.may_change = std::ranges::find(changeable, option.name) != std::end(changeable);
        std::ranges::move(gradient_options(), std::back_inserter(all.options));
        std::ranges::move(gradient_metrics(), std::back_inserter(all.metrics));
        return all;
    }();
    return info;
}

/// Null: the cores. Throws base::UsageError when this rank has no GPU. Collective if `device` is "auto".
device::Accelerator* device_of(const Options& options, TrialContext& context) {
    const std::string wanted = options.text("device", "cpu");
    if (wanted == "cpu") return nullptr;
    const std::vector<std::string> granted = context.devices();
    if (wanted == "auto" && context.group().reduced(granted.empty() ? 0 : 1, ddp::Reduce::min) == 0) return nullptr;
    if (!granted.empty()) return &device::open_granted(granted.front());
    static_cast<void>(device::require_devices()); // says what is missing on this machine
    throw base::UsageError(
        "mlp.device is \"gpu\", but this rank was granted no GPU; resources.gpus = N has that checked before trials "
        "start, and CUDA_VISIBLE_DEVICES names the GPUs outside of a job");
}

/// Options of GPUs do not count then.
bool is_left_to_cores(const Options& options, const device::Accelerator* device) {
    return device == nullptr && options.text("device", "cpu") == "auto";
}

/// The first GPUs that multiply tf32 and bf16: NVIDIA's A100, compute capability 8.0.
constexpr int ampere = 8;

device::Precision precision_of(const Options& options, const device::Accelerator* device) {
    const std::string name = options.text("precision", "fp32");
    if (name == "fp32" || is_left_to_cores(options, device)) return device::Precision::fp32;
    const std::string told = "mlp.precision is \"" + name + "\", but ";
    if (device == nullptr)
        throw base::UsageError(told + "cores compute in fp32 alone: set device = \"gpu\", or precision = \"fp32\"");
    const device::DeviceFacts& facts = device->facts();
    if (facts.major < ampere)
        throw base::UsageError(told + "this GPU (" + facts.name + ", compute capability " +
                               std::to_string(facts.major) + "." + std::to_string(facts.minor) +
                               ") has no such products; they came with 8.0 (A100): set precision = \"fp32\"");
    return name == "tf32" ? device::Precision::tf32 : device::Precision::bf16;
}

bool graphs_of(const Options& options, const device::Accelerator* device) {
    const bool wanted = options.flag("cuda_graphs", false) && !is_left_to_cores(options, device);
    if (wanted && device == nullptr)
        throw base::UsageError(
            "mlp.cuda_graphs is true, but the trial computes on cores: set device = \"gpu\", or leave cuda_graphs out");
    return wanted;
}

data::Scaling scaling_of(const std::string& name) {
    if (name == "none") return data::Scaling::none;
    return name == "unit" ? data::Scaling::unit : data::Scaling::standard;
}

mlp::OptimizerOptions optimizer_options(const Options& options) {
    using Rule = mlp::OptimizerOptions::Kind;
    const std::string name = options.text("optimizer", "sgd");
    mlp::OptimizerOptions result;
    result.kind = name == "sgd" ? Rule::sgd : name == "adam" ? Rule::adam : Rule::adamw;
    result.momentum = options.number("momentum", 0.9);
    result.nesterov = options.flag("nesterov", false);
    result.beta1 = options.number("beta1", 0.9);
    result.beta2 = options.number("beta2", 0.999);
    result.epsilon = options.number("epsilon", 1e-8);
    result.weight_decay = options.number("weight_decay", 0.0);
    return result;
}

mlp::TrainerOptions trainer_options(const Options& options, TrialContext& context) {
    mlp::TrainerOptions result;
    result.hidden.clear();
    for (const std::int64_t size : options.integers("hidden", {128}))
        result.hidden.push_back(static_cast<std::size_t>(size));
    result.activation = options.text("activation", "relu") == "tanh" ? mlp::Activation::tanh : mlp::Activation::relu;
    result.dropout = options.number("dropout", 0.0);
    result.batch = static_cast<std::size_t>(options.integer("batch_size", 64));
    result.optimizer = optimizer_options(options);
    result.lr = options.number("lr", 0.01);
    result.cosine = options.text("lr_schedule", "constant") == "cosine";
    result.epochs = context.max_iterations();
    result.seed = context.seed();
    result.trial = context.trial().value();
    result.device = device_of(options, context);
    result.precision = precision_of(options, result.device);
    result.graphs = graphs_of(options, result.device);
    result.gradients = gradient_choice(context.configuration(), mlp_info().name);
    auto& kind = result.gradients.compression.kind;
    if (kind == ddp::Compression::Kind::bf16_nccl && is_left_to_cores(options, result.device))
        kind = ddp::Compression::Kind::bf16;
    constexpr std::size_t on_cores = std::size_t{1} << 20U;
    const BucketBytes buckets = buckets_of(result.gradients, result.device != nullptr, on_cores);
    result.bucket_floats = std::max<std::size_t>(buckets.limit / sizeof(float), 1);
    result.first_bucket_floats = buckets.first / sizeof(float);
    return result;
}

/// `x`, or the only column that there is.
const data::Column& inputs_of(const data::Batch& batch) {
    if (batch.columns.size() == 1) return batch.columns.front();
    std::vector<std::string> names;
    for (const data::Column& column : batch.columns) {
        if (column.field.name == "x") return column;
        names.push_back(column.field.name);
    }
    throw base::UsageError("the input has no data set 'x' but " + base::join(names) +
                           ": name the one of the inputs, --input FILE:" + (names.empty() ? "x" : names.front()));
}

/// The numbers of a column, rounded to float.
std::vector<float> floats_of(const data::Column& column) {
    const std::size_t size = data::size_of(column.field.type);
    std::vector<float> values(column.bytes().size() / size);
    data::to_floats(column.field.type, column.bytes(), values);
    return values;
}

class Mlp final : public Trainable {
  public:
    void setup(TrialContext& context) override {
        blas::use_threads(context.cpus_per_rank());
        const Options options(context.configuration(), mlp_info());
        if (context.only_predicts()) {
            predicting_.emplace(trainer_options(options, context), context.group());
            return;
        }
        const std::string path = options.text("data", "");
        if (path.empty()) throw base::UsageError("mlp.data: the path of a dataset is required");
        const data::Scaling scaling = scaling_of(options.text("scaling", "standard"));
        const auto gibibytes = [&](const char* name, double otherwise) {
            return static_cast<std::uint64_t>(options.number(name, otherwise) *
                                              static_cast<double>(std::uint64_t{1} << 30U));
        };
        const mlp::TrainerOptions chosen = trainer_options(options, context);
        std::unique_ptr<mlp::TrainingData> data;
        if (auto dataset = data::shared_dataset(path, scaling, gibibytes("in_memory_gb", 16.0))) {
            data = mlp::in_memory(std::move(dataset), chosen.seed, chosen.trial, context.group());
        } else {
            data::LoaderOptions loading = loading_in(context, {});
            loading.batch = chosen.batch;
            loading.order.memory = gibibytes("shuffle_memory_gb", 1.0);
            data = mlp::streamed(path, scaling, loading);
            log_order(context, *data->file(), loading);
        }
        shape_ = data->shape();
        trainer_.emplace(std::move(data), chosen, context.group());
    }

    Metrics step(TrialContext& context) override {
        const double train_loss = trainer_->train_epoch();
        if (const std::string refusal = trainer_->replays().refusal; !refusal.empty() && !told_) {
            context.log("mlp: the GPU does not replay recorded work (" + refusal + "); training goes on without");
            told_ = true;
        }
        const mlp::Validation validation = trainer_->validate();
        Metrics metrics{{"train_loss", train_loss}, {"val_loss", validation.loss}};
        if (shape_.classification) {
            metrics.emplace_back("val_accuracy", validation.accuracy);
        } else {
            metrics.emplace_back("val_rmse", validation.rmse);
            metrics.emplace_back("val_r2", validation.r2);
        }
        if (const auto waited = trainer_->take_waited())
            std::ranges::move(wait_metrics(context.group(), *waited, {}), std::back_inserter(metrics));
        std::ranges::move(trainer_->take_comm_metrics(), std::back_inserter(metrics));
        return metrics;
    }

    void save(study::StateSink& sink) const override { trainer_->save(sink); }
    void load(study::StateSource& source) override {
        if (predicting_) { // the checkpoint has all that the data would say
            auto data = mlp::only_shape(source, predicting_->first.hidden.size() + 1);
            shape_ = data->shape();
            trainer_.emplace(std::move(data), predicting_->first, predicting_->second);
        }
        trainer_->load(source);
    }

    void predict(TrialContext& /*context*/, const data::Batch& batch, study::StateSink& out) override {
        const data::Column& column = inputs_of(batch);
        const std::vector<float> inputs = floats_of(column);
        const std::size_t width = shape_.outputs;
        if (inputs.size() != column.count * shape_.features)
            throw base::UsageError("a sample of the input '" + column.field.name + "' has " +
                                   std::to_string(inputs.size() / std::max<std::size_t>(column.count, 1)) +
                                   " numbers, and the network was trained on " + std::to_string(shape_.features));
        std::vector<float> outputs(column.count * width);
        trainer_->predict(inputs, outputs);
        out.put<float>("y", outputs, {column.count, width});
        if (!shape_.classification) return;
        out.put<std::int32_t>("class", largest_of_rows<float>(outputs, width), {column.count});
    }

  private:
    data::DatasetShape shape_;
    std::optional<std::pair<mlp::TrainerOptions, ddp::Group&>> predicting_; ///< for a trainer that only predicts
    std::optional<mlp::Trainer> trainer_;
    bool told_ = false; ///< of a refusal
};

} // namespace

Registration mlp_registration() {
    return {mlp_info(), [] { return std::make_unique<Mlp>(); }, {}};
}

std::uint64_t mlp_state_bytes(const space::Configuration& configuration) {
    const Options options(configuration, mlp_info());
    const auto shape = data::read_dataset_shape(options.text("data", ""));
    std::vector<std::int64_t> sizes{static_cast<std::int64_t>(shape.features)};
    for (const std::int64_t size : options.integers("hidden", {128})) sizes.push_back(size);
    sizes.push_back(static_cast<std::int64_t>(shape.outputs));
    std::uint64_t parameters = 0;
    for (std::size_t layer = 1; layer < sizes.size(); ++layer)
        parameters += static_cast<std::uint64_t>((sizes[layer - 1] + 1) * sizes[layer]);
    const auto optimizer = optimizer_options(options);
    const bool sgd = optimizer.kind == mlp::OptimizerOptions::Kind::sgd;
    const std::uint64_t moments = sgd ? (optimizer.momentum != 0.0 ? 1 : 0) : 2;
    const std::uint64_t scales = 2 * shape.features + (shape.classification ? 0 : 2 * shape.outputs);
    // Error feedback takes this at most; a trial of one rank has none.
    const bool feeds_back = gradient_choice(configuration, mlp_info().name).compression.feeds_back();
    return sizeof(float) * (parameters * (1 + moments + (feeds_back ? 1 : 0)) + scales);
}

} // namespace ranktune::trainables
