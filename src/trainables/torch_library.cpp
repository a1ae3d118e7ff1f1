// SPDX-License-Identifier: Apache-2.0
// The built-in `torch`: a model of LibTorch in a shared library of the user's, opened when a trial begins. This file
// needs no LibTorch; libranktune-torch.so, which the user's library is linked to, does.

#include <dlfcn.h>

#include <algorithm>
#include <iterator>

#include "ranktune/base/error.hpp"
#include "ranktune/trainables/gradient_options.hpp"
#include "ranktune/trainables/trainable_library.hpp"
#include "trainables/builtin.hpp"
#include "trainables/options.hpp"

namespace ranktune::trainables {

namespace {

using Kind = study::OptionInfo::Kind;

study::TrainableInfo describe() {
    study::TrainableInfo info{
        .name = "torch",
        .description =
            "a LibTorch model in a shared library of your own (RANKTUNE_TORCH_LIBRARY), data-parallel over "
            "the ranks of a trial; one iteration is one epoch",
        .options = {{.name = "library",
                     .kind = Kind::path,
                     .required = true,
                     .description = "shared library with the model, linked to libranktune-torch.so",
                     .check = [](const std::string&) { return why_no_torch(); }},
                    {.name = "data", .kind = Kind::path, .description = "file that the library reads (none)"},
                    {.name = "precision",
                     .kind = Kind::string,
                     .description = "bf16: autocast; fp32, tf32: of float32 products on a GPU (LibTorch's)",
                     .accepted = {"fp32", "tf32", "bf16"},
                     .may_change = true}},
        .any_option = true,
    };
    std::ranges::move(gradient_options(), std::back_inserter(info.options)); // read by ModuleTrainable
    return info;
}

const study::TrainableInfo& torch_info() {
    static const study::TrainableInfo info = describe();
    return info;
}

/// The library stays open: objects, types and threads of it may be in use until the process ends.
const TrainableLibrary& opened_library(const std::string& path) {
    if (const std::string why = why_no_torch(); !why.empty()) throw base::UsageError(why);
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* const error = dlerror();
        throw base::UsageError(std::string("torch.library cannot be opened: ") + (error == nullptr ? path : error) +
                               "; build it with the flags of pkg-config ranktune-torch");
    }
    const auto* const entry = static_cast<const TrainableLibrary*>(dlsym(library, "ranktune_trainable_library"));
    if (entry == nullptr)
        throw base::UsageError("torch.library: " + path + " exports no trainable; it needs the line " +
                               "RANKTUNE_TORCH_LIBRARY(function) of ranktune/torch.hpp");
    if (entry->interface != trainable_library_interface)
        throw base::UsageError("torch.library: " + path + " was compiled with headers of another version of ranktune " +
                               "(interface " + std::to_string(entry->interface) + ", here " +
                               std::to_string(trainable_library_interface) + "): compile it again");
    return *entry;
}

/// Passes everything on to the library's object.
class OfLibrary final : public Trainable {
  public:
    void setup(TrialContext& context) override {
        const Options options(context.configuration(), torch_info());
        inner_ = opened_library(options.text("library", "")).make();
        inner_->setup(context);
    }
    Metrics step(TrialContext& context) override { return inner_->step(context); }
    void save(study::StateSink& sink) const override { inner_->save(sink); }
    void load(study::StateSource& source) override { inner_->load(source); }
    void predict(TrialContext& context, const data::Batch& batch, study::StateSink& out) override {
        inner_->predict(context, batch, out);
    }

  private:
    std::unique_ptr<Trainable> inner_;
};

} // namespace

std::string torch_built_with() { return RANKTUNE_TORCH_BUILT_WITH; }

std::string why_no_torch() {
    if (!torch_built_with().empty()) return {};
    return "this build of ranktune has no LibTorch: install it (Debian: apt-get install libtorch-dev) and build with "
           "meson -Dtorch=enabled; elsewhere also -Dtorch_root=DIR, the folder of LibTorch or of Python's torch";
}

Registration torch_registration() {
    return {torch_info(), [] { return std::make_unique<OfLibrary>(); }, {}};
}

} // namespace ranktune::trainables
