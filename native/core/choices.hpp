// Comparisons of eight lanes at a time, and choices by them: branches for numbers side by side.
#pragma once

#include "lanes.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace fdrsvm::inline FDRSVM_COPY {

struct Choice {
    RegisterMask regs[kRegisters];
};

// A nan is neither below nor at most anything.
FDRSVM_INLINE Choice below(const Lanes& a, const Lanes& b) {
    Choice choice;
    for (size_t r = 0; r < kRegisters; ++r) choice.regs[r] = a.regs[r] < b.regs[r];
    return choice;
}

FDRSVM_INLINE Choice at_most(const Lanes& a, const Lanes& b) {
    Choice choice;
    for (size_t r = 0; r < kRegisters; ++r) choice.regs[r] = a.regs[r] <= b.regs[r];
    return choice;
}

FDRSVM_INLINE Lanes choose(const Choice& where, Lanes yes, const Lanes& no) {
    for (size_t r = 0; r < kRegisters; ++r) yes.regs[r] = where.regs[r] ? yes.regs[r] : no.regs[r];
    return yes;
}

// a where a > b, otherwise (or where one is a nan) b: processors have an instruction for that
// (GCC 12 warns, wrongly, of what its own header does for that of AVX-512).
FDRSVM_INLINE Register larger_of(Register a, Register b) {
#if defined(__AVX__) && !defined(__AVX512F__)
    return _mm256_max_pd(a, b);
#elif defined(__SSE2__) && !defined(__AVX__)
    return _mm_max_pd(a, b);
#else
    return a > b ? a : b;
#endif
}

// a where a < b, otherwise (or where one is a nan) b.
FDRSVM_INLINE Register smaller_of(Register a, Register b) {
#if defined(__AVX__) && !defined(__AVX512F__)
    return _mm256_min_pd(a, b);
#elif defined(__SSE2__) && !defined(__AVX__)
    return _mm_min_pd(a, b);
#else
    return a < b ? a : b;
#endif
}

FDRSVM_INLINE Lanes larger(Lanes a, const Lanes& b) {
    for (size_t r = 0; r < kRegisters; ++r) a.regs[r] = larger_of(a.regs[r], b.regs[r]);
    return a;
}

FDRSVM_INLINE Lanes smaller(Lanes a, const Lanes& b) {
    for (size_t r = 0; r < kRegisters; ++r) a.regs[r] = smaller_of(a.regs[r], b.regs[r]);
    return a;
}

FDRSVM_INLINE Lanes magnitude(const Lanes& a) { return larger(a, Lanes::all(0.0) - a); }

inline double larger(double a, double b) { return a > b ? a : b; }
inline double smaller(double a, double b) { return a < b ? a : b; }

FDRSVM_INLINE bool any(const Choice& where) {
    RegisterMask either = where.regs[0];
    for (size_t r = 1; r < kRegisters; ++r) either |= where.regs[r];
#if defined(__GNUC__) || defined(__clang__)
    long long bits = either[0];
    for (size_t k = 1; k < kRegister; ++k) bits |= either[k];
    return bits != 0;
#else
    return either != 0;
#endif
}

// Sizes rounded up to whole groups of lanes; kernels keep zeros beyond the end.
inline constexpr size_t padded(size_t size) { return (size + kLanes - 1) / kLanes * kLanes; }

}  // namespace fdrsvm::inline FDRSVM_COPY
