// Sums of one shape on every processor: eight lanes, then a fixed tree.
//
// Lane k of a sum takes the terms k, k + 8, k + 16 ... in this order, and the lanes are added as
// ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). A processor with short registers keeps the eight lanes
// in several of them; what is rounded, and when, is the same. Products are never fused with sums.
#pragma once

#include <cstddef>
#include <cstring>

#include "views.hpp"

// The bindings are compiled once, for small code and for no instruction set in particular. Were
// their copies of inline functions called as the kernels' are, the linker would take either.
#ifndef FDRSVM_COPY
#define FDRSVM_COPY bindings
#endif

namespace fdrsvm {
inline namespace FDRSVM_COPY {

inline constexpr size_t kLanes = 8;

// Bindings are compiled for the baseline, kernels for each level: what works on registers must be
// part of its caller, never a function that the linker may take from elsewhere.
#if defined(__GNUC__) || defined(__clang__)
#define FDRSVM_INLINE inline __attribute__((always_inline))
#else
#define FDRSVM_INLINE __forceinline
#endif

#if defined(__GNUC__) || defined(__clang__)
#if defined(__AVX512F__)
inline constexpr size_t kRegister = 8;
#elif defined(__AVX__)
inline constexpr size_t kRegister = 4;
#else
inline constexpr size_t kRegister = 2;
#endif
typedef double Register __attribute__((vector_size(8 * kRegister)));
typedef double InMemory __attribute__((vector_size(8 * kRegister), aligned(8), may_alias));
typedef long long RegisterMask __attribute__((vector_size(8 * kRegister)));
FDRSVM_INLINE Register load_register(const double* from) {
    return *reinterpret_cast<const InMemory*>(from);
}
FDRSVM_INLINE void store_register(double* to, Register value) {
    *reinterpret_cast<InMemory*>(to) = value;
}
FDRSVM_INLINE Register copies_of(double value) { return value - Register{}; }
FDRSVM_INLINE Register keep_bits(Register value, RegisterMask mask) {
    return reinterpret_cast<Register>(reinterpret_cast<RegisterMask>(value) & mask);
}
#else  // compilers without vector types: the same lanes, one by one
inline constexpr size_t kRegister = 1;
typedef double Register;
typedef long long RegisterMask;
FDRSVM_INLINE Register load_register(const double* from) { return *from; }
FDRSVM_INLINE void store_register(double* to, Register value) { *to = value; }
FDRSVM_INLINE Register copies_of(double value) { return value; }
FDRSVM_INLINE Register keep_bits(Register value, RegisterMask mask) { return mask ? value : 0.0; }
#endif
inline constexpr size_t kRegisters = kLanes / kRegister;

// Eight numbers that are worked on side by side.
struct Lanes {
    Register regs[kRegisters];

    // Copied register by register: compilers that copy the whole in shorter pieces wait for each.
    FDRSVM_INLINE Lanes() {}
    FDRSVM_INLINE Lanes(const Lanes& other) { *this = other; }
    FDRSVM_INLINE Lanes& operator=(const Lanes& other) {
        for (size_t r = 0; r < kRegisters; ++r) regs[r] = other.regs[r];
        return *this;
    }

    FDRSVM_INLINE static Lanes all(double value) {
        Lanes lanes;
        for (Register& each : lanes.regs) each = copies_of(value);
        return lanes;
    }
    FDRSVM_INLINE static Lanes load(const double* from) {
        Lanes lanes;
        for (size_t r = 0; r < kRegisters; ++r) lanes.regs[r] = load_register(from + r * kRegister);
        return lanes;
    }
    // The first `count` numbers, and zeros after them.
    FDRSVM_INLINE static Lanes load_part(const double* from, size_t count) {
        double copies[kLanes] = {};
        for (size_t k = 0; k < count; ++k) copies[k] = from[k];
        return load(copies);
    }
    FDRSVM_INLINE void store(double* to) const {
        for (size_t r = 0; r < kRegisters; ++r) store_register(to + r * kRegister, regs[r]);
    }

    FDRSVM_INLINE double sum() const {
#if defined(__AVX__) && (defined(__GNUC__) || defined(__clang__))
#if defined(__AVX512F__)
        const auto four = __builtin_shufflevector(regs[0], regs[0], 0, 1, 2, 3) +
                          __builtin_shufflevector(regs[0], regs[0], 4, 5, 6, 7);
#else
        const auto four = regs[0] + regs[1];
#endif
        const auto two =
            __builtin_shufflevector(four, four, 0, 1) + __builtin_shufflevector(four, four, 2, 3);
        return two[0] + two[1];
#else
        double lane[kLanes];
        store(lane);
        return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
               ((lane[1] + lane[5]) + (lane[3] + lane[7]));
#endif
    }
};

// Keeps the first `count` of eight lanes and makes the others zero, whatever they hold.
class LaneMask {
  public:
    FDRSVM_INLINE explicit LaneMask(size_t count) {
        long long keep[kLanes];
        for (size_t k = 0; k < kLanes; ++k) keep[k] = k < count ? -1 : 0;
        std::memcpy(part_, keep, sizeof part_);
    }
    FDRSVM_INLINE Lanes operator()(Lanes lanes) const {
        for (size_t r = 0; r < kRegisters; ++r) lanes.regs[r] = keep_bits(lanes.regs[r], part_[r]);
        return lanes;
    }

  private:
    RegisterMask part_[kRegisters];
};

#define FDRSVM_LANEWISE(op)                                                         \
    FDRSVM_INLINE Lanes operator op(Lanes a, const Lanes& b) {                      \
        for (size_t r = 0; r < kRegisters; ++r) a.regs[r] = a.regs[r] op b.regs[r]; \
        return a;                                                                   \
    }                                                                               \
    FDRSVM_INLINE Lanes& operator op## = (Lanes & a, const Lanes& b) { return a = a op b; }
FDRSVM_LANEWISE(+)
FDRSVM_LANEWISE(-)
FDRSVM_LANEWISE(*)
FDRSVM_LANEWISE(/)
#undef FDRSVM_LANEWISE

// Sum over i of term(i), where term takes the number of the first of eight and how many there are,
// and gives their Lanes. Whatever is summed this way has the shape described above.
template <class Term>
FDRSVM_INLINE double sum_lanes(size_t size, Term term) {
    Lanes total = Lanes::all(0.0);
    size_t i = 0;
    for (; i + kLanes <= size; i += kLanes) total += term(i, kLanes);
    if (i < size) total += term(i, size - i);
    return total.sum();
}

FDRSVM_INLINE Lanes load_up_to(const double* from, size_t count) {
    return count == kLanes ? Lanes::load(from) : Lanes::load_part(from, count);
}

FDRSVM_INLINE double dot(const double* x, const double* y, size_t size) {
    return sum_lanes(size, [&](size_t i, size_t count) {
        return load_up_to(x + i, count) * load_up_to(y + i, count);
    });
}

FDRSVM_INLINE double sum(const double* x, size_t size) {
    return sum_lanes(size, [&](size_t i, size_t count) { return load_up_to(x + i, count); });
}

// out += scale * x. Each entry is its own sum, so compilers may use any registers they like.
FDRSVM_INLINE void add_scaled(double* out, double scale, const double* x, size_t size) {
    for (size_t i = 0; i < size; ++i) out[i] += scale * x[i];
}

}  // namespace FDRSVM_COPY
}  // namespace fdrsvm
