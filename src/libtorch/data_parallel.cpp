// SPDX-License-Identifier: Apache-2.0
#include "ranktune/libtorch/data_parallel.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "device/device.hpp"
#include "libtorch/cuda.hpp"
#include "libtorch/device_memory.hpp"
#include "libtorch/optimizer_state.hpp"
#include "libtorch/tensors.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"

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

void broadcast(ddp::Group& group, const std::vector<Named>& tensors) {
    const ::torch::NoGradGuard no_gradients;
    for (const Named& named : tensors) {
        const Tensor values = on_host(named.tensor);
        group.broadcast(buffer_of(values, named.name));
        if (values.data_ptr() != named.tensor.data_ptr()) named.tensor.detach().copy_(values);
    }
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
        Tensor sum; ///< in the bucket, with the parameter's shape
        bool arrived = false;
        Accumulator accumulator; ///< keeps the hook
    };

    Impl(ddp::Group& g, std::shared_ptr<::torch::nn::Module> m, const Where& w, std::size_t bucket_bytes)
        : group(g), module(std::move(m)), where(w) {
        module->to(where.device);
        parameters = without_repetitions(module->named_parameters());
        buffers = without_repetitions(module->named_buffers());
        const std::vector<Named> trainable = trained(parameters);
        const base::DType type = dtype_of(trainable.front().tensor, trainable.front().name);
        broadcast(group, parameters);
        broadcast(group, buffers);
        const std::size_t limit = std::max<std::size_t>(bucket_bytes / base::size_of(type), 1);
        reducer = std::make_unique<ddp::GradientReducer>(group, padded_sizes(trainable), limit, type, where.place);
        for (std::size_t i = 0; i < trainable.size(); ++i) {
            const Tensor& tensor = trainable[i].tensor;
            gradients.push_back({trainable[i],
                                 ::torch::from_blob(reducer->gradient_buffer(i).address(), tensor.sizes(),
                                                    tensor.options().requires_grad(false)),
                                 false,
                                 {}});
        }
    }

    /// On a GPU, work is issued to the stream on which the reducer waits.
    [[nodiscard]] std::unique_ptr<StreamScope> stream() const {
        device::Accelerator* const accelerator = device::accelerator_of(where.place);
        return accelerator == nullptr ? nullptr : use_compute_stream(*accelerator, where.device.index());
    }

    /// Autograd has accumulated a gradient. Called while `backward` runs: on the trial's thread for gradients on the
    /// host, on autograd's thread of a GPU, for which the trial's thread waits.
    void take(std::size_t i) {
        if (!collecting) return;
        Gradient& gradient = gradients[i];
        if (gradient.arrived)
            throw base::UsageError("the parameter '" + gradient.parameter.name +
                                   "' got a second gradient in one step; back-propagate the sum of the losses, once");
        const ::torch::NoGradGuard no_gradients;
        Tensor& own = gradient.parameter.tensor.mutable_grad();
        gradient.sum.copy_(own.is_sparse() ? own.to_dense() : own);
        own = gradient.sum;
        gradient.arrived = true;
        while (waited_for > 0 && gradients[waited_for - 1].arrived) reducer->ready(--waited_for);
        reducer->poll();
    }

    void begin() {
        for (Gradient& gradient : gradients) {
            gradient.arrived = false;
            gradient.parameter.tensor.mutable_grad() = Tensor(); // autograd then moves its result there
        }
        waited_for = gradients.size();
    }

    /// The gradients that the step did not compute are zero.
    void complete() {
        for (Gradient& gradient : gradients) {
            if (gradient.arrived) continue;
            gradient.sum.zero_();
            gradient.parameter.tensor.mutable_grad() = gradient.sum;
            gradient.arrived = true;
        }
        while (waited_for > 0) reducer->ready(--waited_for);
    }

    ddp::Group& group;
    std::shared_ptr<::torch::nn::Module> module;
    Where where;
    std::vector<Named> parameters; ///< all
    std::vector<Named> buffers;
    std::unique_ptr<ddp::GradientReducer> reducer;
    std::vector<Gradient> gradients; ///< in the order of `parameters`
    std::size_t waited_for = 0;      ///< the gradients from here on are ready
    bool collecting = false;
};

DataParallel::DataParallel(ddp::Group& group, std::shared_ptr<::torch::nn::Module> module, const Where& where,
                           std::size_t bucket_bytes)
    : impl_(std::make_shared<Impl>(group, std::move(module), where, bucket_bytes)) {
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

/// The buckets end here, and the module may live on.
DataParallel::~DataParallel() {
    for (Impl::Gradient& gradient : impl_->gradients) gradient.parameter.tensor.mutable_grad() = Tensor();
}

double DataParallel::step(const std::function<Tensor()>& loss, double share) {
    Impl& s = *impl_;
    const auto scope = s.stream();
    double value = 0.0;
    s.begin();
    ddp::run_step(*s.reducer, [&] {
        if (loss) {
            const Collecting scope_of_hooks(s.collecting);
            telling_of_memory([&] {
                const Tensor mean = loss();
                (share == 1.0 ? mean : mean * share).backward();
                value = mean.item<double>();
            });
            if (!std::isfinite(value))
                throw base::Error(std::string("loss is ") + (std::isnan(value) ? "NaN" : "infinite"));
        }
        s.complete();
    });
    return value;
}

void DataParallel::share_buffers() {
    Impl& s = *impl_;
    if (s.group.size() == 1) return;
    const auto scope = s.stream();
    const ::torch::NoGradGuard no_gradients;
    std::vector<Tensor> parts;
    std::vector<Named> others;
    for (const Named& buffer : s.buffers) {
        if (buffer.tensor.is_floating_point())
            parts.push_back(on_host(buffer.tensor).to(::torch::kFloat64).reshape(-1));
        else
            others.push_back(buffer);
    }
    broadcast(s.group, others);
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
}

void DataParallel::load(study::StateSource& source, ::torch::optim::Optimizer& optimizer) {
    const auto scope = impl_->stream();
    for (const Named& parameter : impl_->parameters) get(source, parameter);
    for (const Named& buffer : impl_->buffers) get(source, buffer);
    load_optimizer(source, optimizer, impl_->parameters);
}

::torch::nn::Module& DataParallel::module() const { return *impl_->module; }
const Where& DataParallel::where() const { return impl_->where; }

} // namespace ranktune::libtorch
