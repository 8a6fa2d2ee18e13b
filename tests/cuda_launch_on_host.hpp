// SPDX-License-Identifier: Apache-2.0
// Kernels launched as the driver does, by the `host::run` of whoever includes this.
#pragma once

#include <utility>

namespace host {

template <typename... Parameters, size_t... Numbers>
void call(void (*kernel)(Parameters...), void** args, std::index_sequence<Numbers...>) {
    kernel(*(Parameters*)args[Numbers]...);
}

// Launch a kernel as the driver does, with the addresses of its arguments.
template <typename... Parameters>
void launch(void (*kernel)(Parameters...), unsigned int grid, unsigned int block, void** args) {
    run(grid, block, [=] { call(kernel, args, std::index_sequence_for<Parameters...>()); });
}

// Write the bytes of each parameter; return how many there are.
template <typename... Parameters>
int measure(void (*)(Parameters...), int* sizes) {
    int number = 0;
    ((sizes[number++] = int(sizeof(Parameters))), ...);
    return number;
}

}  // namespace host
