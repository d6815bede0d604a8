// The edge between Python and the kernels: every array is looked at here, once, and nowhere else.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../core/norms.hpp"
#include "../core/views.hpp"

namespace fdrsvm::edge {

namespace nb = nanobind;
using namespace nb::literals;

inline constexpr size_t kAnySize = static_cast<size_t>(-1);

[[noreturn]] inline void refuse(const char* name, const std::string& rule) {
    throw nb::type_error((std::string(name) + ": must be " + rule).c_str());
}

inline void check_size(const char* name, size_t given, size_t expected) {
    if (expected != kAnySize && given != expected) {
        const std::string rule = std::string(name) + ": must have " + std::to_string(expected) +
                                  " entries, it has " + std::to_string(given);
        throw nb::value_error(rule.c_str());
    }
}

inline Norm check_norm(int code) {
    if (code < 1 || code > 3) throw nb::value_error("norm: must be 1 (l1), 2 (l2) or 3 (linf)");
    return static_cast<Norm>(code);
}

// Groups of features, kept for as long as kernels read where each starts.
class HeldTransport {
  public:
    HeldTransport() = default;
    // `sizes` of the groups in the order of the features, or None.
    HeldTransport(int norm, nb::handle sizes, size_t n_features) : norm_(check_norm(norm)) {
        if (sizes.is_none()) return;
        starts_.push_back(0);
        for (nb::handle size : sizes) {
            const size_t n = nb::cast<size_t>(size);
            if (n < 1 || n > n_features - starts_.back())
                throw nb::value_error("groups: must be at least 1, and add up to the features");
            starts_.push_back(starts_.back() + n);
        }
        if (starts_.back() != n_features)
            throw nb::value_error("groups: must add up to the number of features");
    }

    Transport view() const { return {norm_, starts_}; }

  private:
    Norm norm_ = Norm::linf;
    std::vector<size_t> starts_;
};

// An array that Python owns: kept alive as long as this is, read through `view`.
template <class T, size_t Dimensions>
class Held {
    using Array = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

  public:
    Held() = default;
    Held(nb::handle given, const char* name) : object(nb::borrow(given)) {
        // No conversion: an implicit copy would cost time unseen, and a kernel that writes would
        // write into the copy.
        if (!nb::try_cast<Array>(given, array_, false)) refuse(name, rule());
        if (reinterpret_cast<std::uintptr_t>(array_.data()) % alignof(T) != 0) refuse(name, rule());
        if constexpr (kIsAddress) {
            copy_ = std::shared_ptr<Value[]>(new Value[array_.size()]);
            std::copy_n(array_.data(), array_.size(), copy_.get());
        }
    }

    nb::object object;  // the very array that was handed in

    size_t size() const { return array_.size(); }
    size_t shape(size_t axis) const { return array_.shape(axis); }
    T* data() const {
        if constexpr (kIsAddress) return copy_.get();
        return array_.data();
    }

  private:
    using Value = std::remove_const_t<T>;
    // Whole numbers that are read say where kernels look: they are copied, so that nobody changes
    // them between the check and the call.
    static constexpr bool kIsAddress = std::is_const_v<T> && std::is_integral_v<Value>;

    Array array_;
    std::shared_ptr<Value[]> copy_;

    static std::string rule() {
        std::string text = "an aligned, C-ordered array of ";
        if constexpr (std::is_same_v<Value, double>) text += "float64";
        if constexpr (std::is_same_v<Value, std::int64_t>) text += "int64";
        if constexpr (std::is_same_v<Value, std::int32_t>) text += "int32";
        text += std::is_const_v<T> ? "" : " that may be written to";
        return text + " with " + std::to_string(Dimensions) + " dimension(s)";
    }
};

// A vector of `size` numbers (any, if not said), to read or, for a T without const, to write.
template <class T = const double>
class HeldVector : public Held<T, 1> {
  public:
    HeldVector() = default;
    HeldVector(nb::handle given, const char* name, size_t size = kAnySize)
        : Held<T, 1>(given, name) {
        check_size(name, this->size(), size);
    }
    std::span<T> view() const { return {this->data(), this->size()}; }
};

template <class T = const double>
class HeldMatrix : public Held<T, 2> {
  public:
    HeldMatrix() = default;
    HeldMatrix(nb::handle given, const char* name, size_t rows = kAnySize,
               size_t columns = kAnySize)
        : Held<T, 2>(given, name) {
        check_size(name, this->shape(0), rows);
        check_size(name, this->shape(1), columns);
    }
    BasicMatrix<T> view() const {
        return {this->data(), this->shape(0), this->shape(1), this->shape(1)};
    }
};

// A new array for Python, filled by a kernel through `view`.
class NewVector {
  public:
    explicit NewVector(size_t size) : size_(size), data_(new double[size]) {
        nb::capsule owner(data_, [](void* p) noexcept { delete[] static_cast<double*>(p); });
        object = nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<1>>(data_, {size}, owner));
    }
    nb::object object;
    Vector view() const { return {data_, size_}; }

  private:
    size_t size_;
    double* data_;
};

class NewMatrix {
  public:
    NewMatrix(size_t rows, size_t columns)
        : rows_(rows), columns_(columns), data_(new double[product(rows, columns)]) {
        nb::capsule owner(data_, [](void* p) noexcept { delete[] static_cast<double*>(p); });
        object =
            nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<2>>(data_, {rows, columns}, owner));
    }
    nb::object object;
    Matrix view() const { return {data_, rows_, columns_, columns_}; }

  private:
    static size_t product(size_t rows, size_t columns) {
        if (columns > 0 && rows > static_cast<size_t>(-1) / 2 / sizeof(double) / columns)
            throw std::bad_array_new_length();
        return rows * columns;
    }

    size_t rows_, columns_;
    double* data_;
};

}  // namespace fdrsvm::edge
