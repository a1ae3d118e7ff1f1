// SPDX-License-Identifier: Apache-2.0
#include "libtorch/loss_reader.hpp"

namespace ranktune::libtorch {

LossReader::LossReader(const Where& where) {
    if (!where.device.is_cuda()) return;
    on_ = device::accelerator_of(where.place);
    pinned_ = on_->allocate_pinned(sizeof(double));
    copied_ = on_->make_event();
}

void LossReader::read(const ::torch::Tensor& loss) {
    loss_ = loss.detach();
    if (on_ == nullptr) return;
    loss_ = loss_.to(::torch::kFloat64);
    on_->compute_stream().download(pinned_.get(), loss_.data_ptr(), sizeof(double));
    on_->compute_stream().record(*copied_);
}

double LossReader::wait(const std::function<void()>& look) {
    if (on_ == nullptr) return loss_.item<double>();
    core_.until([&] { return copied_->reached(); }, look);
    return *static_cast<const double*>(pinned_.get());
}

} // namespace ranktune::libtorch
