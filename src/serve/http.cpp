// SPDX-License-Identifier: Apache-2.0
#include "serve/http.hpp"

#include <dlfcn.h>

#include "ranktune/base/error.hpp"

namespace ranktune::serve {

void serve_http(Handler& handler, std::uint16_t port, const std::function<void(std::uint16_t port)>& listening) {
    void* const module = dlopen(RANKTUNE_SERVE_MODULE, RTLD_NOW | RTLD_LOCAL);
    void* const found = module == nullptr ? nullptr : dlsym(module, "ranktune_serve_http");
    if (found == nullptr) {
        const char* error = dlerror();
        throw base::UsageError("serve: " + std::string(error != nullptr ? error : "the module is not ranktune's") +
                               "; ranktune serves pages if it was built with cpp-httplib (Debian: libcpp-httplib-dev) "
                               "and " RANKTUNE_SERVE_MODULE
                               " lies beside libranktune.so. Without it: ranktune report, ranktune "
                               "status --watch");
    }
    const std::string problem = (*reinterpret_cast<ServeFunction>(found))(handler, port, listening);
    if (!problem.empty()) throw base::UsageError("serve: " + problem);
}

} // namespace ranktune::serve
