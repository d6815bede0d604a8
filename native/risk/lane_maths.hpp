// Comparisons, choices and careful sums of eight numbers side by side; each lane is on its own, so
// that the bits do not depend on how many of them a register holds.
#pragma once

#include <cmath>
#include <limits>

#include "../core/lanes.hpp"

namespace fdrsvm::risk {

struct Mask {
    RegisterMask regs[kRegisters];
};

#define FDRSVM_COMPARISON(name, op)                                                    \
    inline Mask name(const Lanes& a, const Lanes& b) {                                 \
        Mask mask;                                                                     \
        for (size_t r = 0; r < kRegisters; ++r) mask.regs[r] = a.regs[r] op b.regs[r]; \
        return mask;                                                                   \
    }
FDRSVM_COMPARISON(is_above, >)
FDRSVM_COMPARISON(is_at_most, <=)
FDRSVM_COMPARISON(is_equal, ==)
#undef FDRSVM_COMPARISON

inline Mask both(Mask a, const Mask& b) {
    for (size_t r = 0; r < kRegisters; ++r) a.regs[r] = a.regs[r] & b.regs[r];
    return a;
}
inline Mask either(Mask a, const Mask& b) {
    for (size_t r = 0; r < kRegisters; ++r) a.regs[r] = a.regs[r] | b.regs[r];
    return a;
}

// Whether it holds in any lane.
inline bool any(const Mask& mask) {
    long long lanes[kLanes];
    std::memcpy(lanes, mask.regs, sizeof lanes);
    long long bits = 0;
    for (long long lane : lanes) bits |= lane;
    return bits != 0;
}

inline Lanes choose(const Mask& mask, const Lanes& yes, const Lanes& no) {
    Lanes lanes;
    for (size_t r = 0; r < kRegisters; ++r) lanes.regs[r] = mask.regs[r] ? yes.regs[r] : no.regs[r];
    return lanes;
}
// The value where the mask holds, else 0.
inline Lanes only(const Mask& mask, Lanes value) {
    for (size_t r = 0; r < kRegisters; ++r) value.regs[r] = keep_bits(value.regs[r], mask.regs[r]);
    return value;
}

// A nan in `a` stays, so that it reaches the value and is refused there.
inline double larger(double a, double b) { return b > a ? b : a; }
inline double smaller(double a, double b) { return b < a ? b : a; }
inline Lanes larger(const Lanes& a, const Lanes& b) { return choose(is_above(b, a), b, a); }
inline Lanes smaller(const Lanes& a, const Lanes& b) { return choose(is_above(a, b), b, a); }
inline Lanes square_root(const Lanes& a) {
    double values[kLanes];
    a.store(values);
    for (double& value : values) value = std::sqrt(value);
    return Lanes::load(values);
}

// Kahan's sum: a million equal masses must add up to 1, not to 1 + 1e-11, because such sums are
// compared with the budget.
struct Total {
    double sum = 0.0, lost = 0.0;

    void add(double term) {
        term -= lost;
        const double next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
};

// Eight of them.
struct LaneTotal {
    Lanes lanes = Lanes::all(0.0), lost = Lanes::all(0.0);

    void add(Lanes term) {
        term -= lost;
        const Lanes next = lanes + term;
        lost = (next - lanes) - term;
        lanes = next;
    }
    double sum() const { return lanes.sum(); }
};

}  // namespace fdrsvm::risk
