// What kernels work on: borrowed arrays with their sizes, and scratch memory of their own.
#pragma once

#include <cstddef>
#include <cstdint>
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
        : memory_(take(bytes(size))), data_(aligned(memory_)), size_(size) {}
    Buffer(size_t size, T value) : Buffer(size) {
        for (size_t i = 0; i < size; ++i) data_[i] = value;
    }
    Buffer(Buffer&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)),
          data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Buffer() { give_back(memory_); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    size_t size() const { return size_; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }
    operator std::span<T>() { return {data_, size_}; }
    operator std::span<const T>() const { return {data_, size_}; }

  private:
    static constexpr size_t kLine = 64;

    void* memory_ = nullptr;
    T* data_ = nullptr;
    size_t size_ = 0;

    static size_t bytes(size_t size) {
        if (size > static_cast<size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
        return size * sizeof(T);
    }
#if defined(FDRSVM_SANITIZE)  // nothing is to lie between a buffer's end and that of its memory
    static void* take(size_t bytes) { return ::operator new(bytes, std::align_val_t(kLine)); }
    static void give_back(void* memory) { ::operator delete(memory, std::align_val_t(kLine)); }
#else  // aligned here: where the library does it, memory of a few lines takes five times as long
    static void* take(size_t bytes) { return ::operator new(bytes + kLine); }
    static void give_back(void* memory) { ::operator delete(memory); }
#endif
    static T* aligned(void* memory) {
        const size_t beyond = reinterpret_cast<std::uintptr_t>(memory) % kLine;
        return reinterpret_cast<T*>(static_cast<char*>(memory) + (beyond ? kLine - beyond : 0));
    }
};

}  // namespace fdrsvm
