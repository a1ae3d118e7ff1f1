// SPDX-License-Identifier: Apache-2.0
#include "ranktune/libtorch/data_parallel.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "device/device.hpp"
#include "libtorch/clip.hpp"
#include "libtorch/device_memory.hpp"
#include "libtorch/loss_reader.hpp"
#include "libtorch/optimizer_state.hpp"
#include "libtorch/streams.hpp"
#include "libtorch/tensors.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/ddp/comm_meter.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"
#include "ranktune/ddp/parameters.hpp"

namespace ranktune::libtorch {

namespace {

using ::torch::Tensor;

/// A shared_ptr or, in newer versions, an intrusive_ptr.
using Accumulator = decltype(::torch::autograd::impl::grad_accumulator(std::declval<const Tensor&>()));

/// Tensors by name; one that has several names (shared weights) has its first.
template <class Dictionary>
std::vector<Named> without_repetitions(const Dictionary& dictionary) {
    std::vector<Named> result;
    for (const auto& item : dictionary) {
        const Tensor& tensor = item.value();
        if (!tensor.defined()) continue; // a batch normalisation without statistics
        if (std::ranges::none_of(result, [&](const Named& named) { return named.tensor.is_same(tensor); }))
            result.push_back({item.key(), tensor});
    }
    return result;
}

/// Those that are trained. Throws base::UsageError unless all are of one floating-point type.
std::vector<Named> trained(const std::vector<Named>& all) {
    std::vector<Named> result;
    std::ranges::copy_if(all, std::back_inserter(result), [](const Named& p) { return p.tensor.requires_grad(); });
    if (result.empty()) throw base::UsageError("the module has no parameter that requires a gradient");
    for (const Named& parameter : result)
        if (parameter.tensor.scalar_type() != result.front().tensor.scalar_type())
            throw base::UsageError("the parameters '" + result.front().name + "' and '" + parameter.name +
                                   "' are of different types; convert the module to one: module->to(torch::kFloat32)");
    return result;
}

/// Numbers of a bucket for a tensor: vector instructions begin at multiples of 64 bytes.
std::size_t padded(const Tensor& tensor) {
    constexpr std::size_t multiple = 16;
    return (static_cast<std::size_t>(tensor.numel()) + multiple - 1) / multiple * multiple;
}

std::vector<std::size_t> padded_sizes(const std::vector<Named>& parameters) {
    std::vector<std::size_t> sizes;
    for (const Named& parameter : parameters) sizes.push_back(padded(parameter.tensor));
    return sizes;
}

/// For powersgd: a parameter of two or more dimensions, as rows by its first one.
std::vector<ddp::Matrix> matrices_of(const std::vector<Named>& parameters) {
    std::vector<ddp::Matrix> matrices;
    for (const Named& parameter : parameters) {
        const auto rows = static_cast<std::size_t>(parameter.tensor.dim() < 2 ? 0 : parameter.tensor.size(0));
        const auto numbers = static_cast<std::size_t>(parameter.tensor.numel());
        matrices.push_back(rows == 0 ? ddp::Matrix{} : ddp::Matrix{rows, numbers / rows});
    }
    return matrices;
}

constexpr const char* saved_order = "gradients.order";

/// From GPU to GPU, where the tensors lie on some.
void broadcast(ddp::Group& group, const std::vector<Named>& tensors, const base::Place& place) {
    const ::torch::NoGradGuard no_gradients;
    std::vector<Tensor> values;
    std::vector<base::Buffer> buffers;
    for (const Named& named : tensors) {
        values.push_back(place.is_host() ? on_host(named.tensor) : named.tensor.detach().contiguous());
        buffers.push_back(buffer_of(values.back(), named.name, place));
    }
    ddp::share_parameters(group, buffers);
    for (std::size_t i = 0; i < tensors.size(); ++i)
        if (values[i].data_ptr() != tensors[i].tensor.data_ptr()) tensors[i].tensor.detach().copy_(values[i]);
}

/// While it lives, gradients that autograd accumulates are those of the step.
class Collecting {
  public:
    explicit Collecting(bool& flag) : flag_(flag) { flag_ = true; }
    ~Collecting() { flag_ = false; }
    Collecting(const Collecting&) = delete;
    Collecting& operator=(const Collecting&) = delete;

  private:
    bool& flag_;
};

} // namespace

struct DataParallel::Impl {
    /// A parameter that is trained, and its gradient.
    struct Gradient {
        Named parameter;
        Tensor sum; ///< in the bucket, with the parameter's shape; undefined on one rank
        bool arrived = false;
        Accumulator accumulator; ///< keeps the hook
    };

    Impl(ddp::Group& g, std::shared_ptr<::torch::nn::Module> m, const Where& w, ParallelOptions o)
        : group(g), module(std::move(m)), where(w), options(std::move(o)), losses(w) {
        const auto scope = stream();
        module->to(where.device);
        parameters = without_repetitions(module->named_parameters());
        buffers = without_repetitions(module->named_buffers());
        const std::vector<Named> trainable = trained(parameters);
        const base::DType type = dtype_of(trainable.front().tensor, trainable.front().name);
        broadcast(group, parameters, where.place);
        broadcast(group, buffers, where.place);
        for (const Named& parameter : trainable) gradients.push_back({parameter, {}, false, {}});
        if (group.size() == 1) return;
        constexpr std::size_t on_cores = std::size_t{4} << 20U;
        if (options.gradients.bucket_bytes == 0) options.gradients.bucket_bytes = options.bucket_bytes;
        const auto buckets = trainables::buckets_of(options.gradients, !where.place.is_host(), on_cores);
        const std::size_t limit = std::max<std::size_t>(buckets.limit / base::size_of(type), 1);
        reducer = std::make_unique<ddp::GradientReducer>(
            group, padded_sizes(trainable),
            ddp::ReducerSettings{limit, type, where.place, options.gradients.compression, matrices_of(trainable),
                                 buckets.first / base::size_of(type)});
        if (options.gradients.metrics) meter.watch(*reducer);
        find_gradients();
    }

    void find_gradients() {
        for (std::size_t i = 0; i < gradients.size(); ++i) {
            const Tensor& tensor = gradients[i].parameter.tensor;
            // With the parameter's strides (channels_last), as autograd makes them: fused optimizers walk over memory.
            const bool dense = tensor.is_non_overlapping_and_dense();
            const Tensor like = dense ? tensor : tensor.detach().contiguous();
            gradients[i].sum = ::torch::from_blob(reducer->gradient_buffer(i).address(), tensor.sizes(), like.strides(),
                                                  tensor.options().requires_grad(false));
        }
    }

    /// The reducer waits for the compute stream alone. So every function that touches tensors works there.
    [[nodiscard]] std::unique_ptr<StreamScope> stream() const { return stream_scope(where); }

    /// Autograd has accumulated a gradient. Called while `backward` runs: on the trial's thread for gradients on the
    /// host, on autograd's thread of a GPU, for which the trial's thread waits.
    void take(std::size_t i) {
        if (!collecting) return;
        Gradient& gradient = gradients[i];
        if (gradient.arrived)
            throw base::UsageError("the parameter '" + gradient.parameter.name +
                                   "' got a second gradient in one step; back-propagate the sum of the losses, once");
        const auto scope = stream(); // autograd may have its own thread, and the accumulator another stream
        const ::torch::NoGradGuard no_gradients;
        Tensor& own = gradient.parameter.tensor.mutable_grad();
        if (own.is_sparse()) own = own.to_dense();
        gradient.arrived = true;
        if (!reducer) return;
        gradient.sum.copy_(own);
        own = gradient.sum;
        reducer->ready(i);
        reducer->poll();
    }

    void begin() {
        for (Gradient& gradient : gradients) {
            gradient.arrived = false;
            if (adding) continue;
            gradient.parameter.tensor.mutable_grad() = Tensor(); // autograd then moves its result there
        }
        if (to_plan) follow_order();
    }

    /// Between steps, when nobody needs the gradients of the last one: their memory changes. Collective.
    void follow_order() {
        to_plan = false;
        if (reducer->reorder({order.begin(), order.end()})) find_gradients();
    }

    /// After the first step. All ranks know the order at once, so that a checkpoint has it.
    void learn_order() {
        if (!order.empty() || group.size() == 1) return;
        const std::vector<std::size_t> arrivals = reducer->agreed_arrivals();
        order.assign(arrivals.begin(), arrivals.end());
        to_plan = true;
    }

    /// Back-propagates `loss`, if there is one, and returns it.
    double compute(const std::function<Tensor()>& loss, double share) {
        double value = 0.0;
        if (loss) {
            const Collecting scope_of_hooks(collecting);
            telling_of_memory([&] {
                const Tensor mean = loss();
                losses.read(mean);
                (share == 1.0 ? mean : mean * share).backward();
                value = losses.wait([&] { check_sums(); });
            });
            check_sums(); // that was a wait for the GPU
            if (!std::isfinite(value))
                throw base::Error(std::string("loss is ") + (std::isnan(value) ? "NaN" : "infinite"));
        }
        complete();
        return value;
    }

    void check_sums() const {
        if (reducer) reducer->check_sums();
    }

    /// Calls `compute_gradients` as a step, or as a part of one.
    template <class ComputeGradients>
    void run(bool whole, ComputeGradients&& compute_gradients) {
        if (reducer)
            return whole ? ddp::run_step(*reducer, compute_gradients)
                         : ddp::run_micro_step(*reducer, compute_gradients);
        group.barrier(); // looks whether the trial goes on
        try {
            compute_gradients();
        } catch (...) {
            adding = false;
            throw;
        }
        adding = !whole;
    }

    /// Without waiting for a GPU.
    void clip(double most) {
        const bool in_buckets =
            reducer && (where.place.is_host() || gradients.front().sum.scalar_type() == ::torch::kFloat32);
        if (in_buckets) return reducer->clip_norm(most);
        std::vector<Tensor> all;
        for (const Gradient& gradient : gradients) all.push_back(gradient.parameter.tensor.grad());
        clip_together(all, most);
    }

    /// The gradients that the step did not compute are zero.
    void complete() {
        for (std::size_t i = gradients.size(); i-- > 0;) {
            Gradient& gradient = gradients[i];
            if (gradient.arrived) continue;
            gradient.arrived = true;
            Tensor& own = gradient.parameter.tensor.mutable_grad();
            if (!reducer) {
                if (!own.defined()) own = ::torch::zeros_like(gradient.parameter.tensor);
                continue;
            }
            gradient.sum.zero_();
            own = gradient.sum;
            reducer->ready(i);
        }
    }

    ddp::Group& group;
    std::shared_ptr<::torch::nn::Module> module;
    Where where;
    ParallelOptions options;
    std::vector<Named> parameters; ///< all
    std::vector<Named> buffers;
    std::unique_ptr<ddp::GradientReducer> reducer; ///< null on one rank: gradients stay where autograd puts them
    std::vector<Gradient> gradients;               ///< in the order of `parameters`
    std::vector<std::uint64_t> order;              ///< in which they become ready; empty: not known yet
    bool to_plan = false;                          ///< the reducer has another order
    ddp::CommMeter meter;
    LossReader losses;
    bool collecting = false;
    bool adding = false; ///< without a reducer: the gradients of the parts of a step, so far
};

DataParallel::DataParallel(ddp::Group& group, std::shared_ptr<::torch::nn::Module> module, const Where& where,
                           ParallelOptions options)
    : impl_(std::make_shared<Impl>(group, std::move(module), where, std::move(options))) {
    namespace autograd = ::torch::autograd;
    const auto scope = impl_->stream(); // an accumulator works on the stream on which it was made
    for (std::size_t i = 0; i < impl_->gradients.size(); ++i) {
        Impl::Gradient& gradient = impl_->gradients[i];
        gradient.accumulator = autograd::impl::grad_accumulator(gradient.parameter.tensor);
        gradient.accumulator->add_post_hook(std::make_unique<autograd::utils::LambdaPostHook>(
            [weak = std::weak_ptr<Impl>(impl_), i](const auto& outputs, const auto& /*inputs*/) {
                if (const auto impl = weak.lock()) impl->take(i);
                return outputs;
            }));
    }
}

/// The buckets end here, and the module may live on. Work of the caller's stream may still use them: their memory is
/// freed when the compute stream has come to its end.
DataParallel::~DataParallel() {
    std::unique_ptr<StreamScope> scope;
    try {
        scope = impl_->stream();
    } catch (const device::DeviceError&) { // nothing runs on a lost device
    }
    for (Impl::Gradient& gradient : impl_->gradients) gradient.parameter.tensor.mutable_grad() = Tensor();
}

double DataParallel::step(const std::function<Tensor()>& loss, double share) {
    Impl& s = *impl_;
    const auto scope = s.stream();
    double value = 0.0;
    s.begin();
    s.run(true, [&] { value = s.compute(loss, share); });
    s.learn_order();
    const trainables::GradientChoice& choice = s.options.gradients;
    if (choice.metrics && s.reducer) s.meter.after_step(*s.reducer);
    if (choice.clip_norm > 0.0) s.clip(choice.clip_norm);
    return value;
}

double DataParallel::accumulate(const std::function<Tensor()>& loss, double share) {
    Impl& s = *impl_;
    const auto scope = s.stream();
    double value = 0.0;
    s.begin();
    s.run(false, [&] { value = s.compute(loss, share); });
    return value;
}

std::vector<std::pair<std::string, double>> DataParallel::take_comm_metrics() {
    if (!impl_->options.gradients.metrics) return {};
    return impl_->reducer ? impl_->meter.take(*impl_->reducer) : ddp::CommMeter::of_one_rank();
}

void DataParallel::share_buffers() {
    Impl& s = *impl_;
    if (s.group.size() == 1) return;
    const auto scope = s.stream();
    s.reducer->settle();
    const ::torch::NoGradGuard no_gradients;
    std::vector<Tensor> parts;
    std::vector<Named> others;
    for (const Named& buffer : s.buffers) {
        if (buffer.tensor.is_floating_point())
            parts.push_back(on_host(buffer.tensor).to(::torch::kFloat64).reshape(-1));
        else
            others.push_back(buffer);
    }
    broadcast(s.group, others, s.where.place);
    if (parts.empty()) return;
    Tensor all = ::torch::cat(parts);
    s.group.all_reduce(buffer_of(all, "buffers"));
    all /= s.group.size();
    std::int64_t begin = 0;
    for (const Named& buffer : s.buffers) {
        if (!buffer.tensor.is_floating_point()) continue;
        const std::int64_t count = buffer.tensor.numel();
        buffer.tensor.detach().copy_(all.narrow(0, begin, count).reshape(buffer.tensor.sizes()));
        begin += count;
    }
}

void DataParallel::save(study::StateSink& sink, const ::torch::optim::Optimizer& optimizer) const {
    const auto scope = impl_->stream();
    for (const Named& parameter : impl_->parameters) put(sink, parameter);
    for (const Named& buffer : impl_->buffers) put(sink, buffer);
    save_optimizer(sink, optimizer, impl_->parameters);
    if (!impl_->order.empty()) sink.put<std::uint64_t>(saved_order, impl_->order);
    if (impl_->reducer) impl_->reducer->save(sink);
}

void DataParallel::load(study::StateSource& source, ::torch::optim::Optimizer& optimizer) {
    const auto scope = impl_->stream();
    for (const Named& parameter : impl_->parameters) get(source, parameter);
    for (const Named& buffer : impl_->buffers) get(source, buffer);
    load_optimizer(source, optimizer, impl_->parameters);
    const std::vector<study::TensorInfo> saved = source.tensors();
    const auto found = std::ranges::find(saved, saved_order, &study::TensorInfo::name);
    const std::vector<std::uint64_t> shape{impl_->gradients.size()};
    if (found != saved.end() && found->shape == shape) { // of the same parameters
        impl_->order.resize(impl_->gradients.size());
        source.get<std::uint64_t>(saved_order, impl_->order);
        impl_->to_plan = impl_->group.size() > 1;
    }
    if (impl_->reducer) impl_->reducer->load(source);
}

::torch::nn::Module& DataParallel::module() const { return *impl_->module; }
const Where& DataParallel::where() const { return impl_->where; }

} // namespace ranktune::libtorch
