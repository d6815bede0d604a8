// What kernels work on: borrowed arrays with their sizes, and scratch memory of their own.
#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <span>
#include <utility>

namespace fdrsvm {

using std::size_t;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Vector = std::span<double>;
using ConstVector = std::span<const double>;

// Rows of equal length, `stride` numbers apart.
template <class T>
struct BasicMatrix {
    T* data = nullptr;
    size_t rows = 0;
    size_t columns = 0;
    size_t stride = 0;

    std::span<T> operator[](size_t row) const { return {data + row * stride, columns}; }
    operator BasicMatrix<const T>() const { return {data, rows, columns, stride}; }
};
using Matrix = BasicMatrix<double>;
using ConstMatrix = BasicMatrix<const double>;

// Scratch memory on a cache line's boundary, not set to anything. Taken once per call, never in a
// loop; where there is none left the caller gets std::bad_alloc, which Python sees as MemoryError.
template <class T = double>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(size_t size)
        : data_(static_cast<T*>(::operator new(bytes(size), std::align_val_t(64)))), size_(size) {}
    Buffer(size_t size, T value) : Buffer(size) {
        for (size_t i = 0; i < size; ++i) data_[i] = value;
    }
    Buffer(Buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Buffer() { ::operator delete(data_, std::align_val_t(64)); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    size_t size() const { return size_; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }
    operator std::span<T>() { return {data_, size_}; }
    operator std::span<const T>() const { return {data_, size_}; }

  private:
    T* data_ = nullptr;
    size_t size_ = 0;

    static size_t bytes(size_t size) {
        if (size > static_cast<size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
        return size * sizeof(T);
    }
};

}  // namespace fdrsvm
