// Arrays of int64 that kernels make for Python, and the check of those that point into others.
#pragma once

#include "arrays.hpp"

namespace fdrsvm::edge {

using Indices = std::span<const std::int64_t>;

class NewIndices {
  public:
    explicit NewIndices(size_t size) : size_(size), data_(new std::int64_t[size]) {
        nb::capsule owner(data_, [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
        object = nb::cast(nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>(data_, {size}, owner));
    }
    nb::object object;
    std::span<std::int64_t> view() const { return {data_, size_}; }

  private:
    size_t size_;
    std::int64_t* data_;
};

// Every entry must be the number of one of `size` things.
template <class T>
void check_indices(const char* name, std::span<const T> indices, size_t size) {
    bool is_inside = true;
    for (T index : indices) is_inside &= index >= 0 && static_cast<size_t>(index) < size;
    if (!is_inside) {
        const std::string rule =
            std::string(name) + ": must lie between 0 and " + std::to_string(size) + " - 1";
        throw nb::value_error(rule.c_str());
    }
}

}  // namespace fdrsvm::edge
