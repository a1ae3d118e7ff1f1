// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD: MPI_Init_thread initialises CUDA, as an MPI with CUDA does. CUDA then reads
// CUDA_VISIBLE_DEVICES long before ranktune gives the rank its GPU.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

extern "C" int MPI_Init_thread(int* argc, char*** argv, int wanted, int* provided) {
    void* const cuda = dlopen("libcudart.so.13", RTLD_NOW | RTLD_GLOBAL);
    const auto count = reinterpret_cast<int (*)(int*)>(cuda == nullptr ? nullptr : dlsym(cuda, "cudaGetDeviceCount"));
    int devices = 0;
    if (count == nullptr || count(&devices) != 0) {
        std::fprintf(stderr, "early_cuda: no CUDA\n");
        std::abort();
    }
    using Init = int (*)(int*, char***, int, int*);
    return reinterpret_cast<Init>(dlsym(RTLD_NEXT, "MPI_Init_thread"))(argc, argv, wanted, provided);
}
