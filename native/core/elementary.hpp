// sin, cos, exp, log, tanh and powers, with the same bits on every processor.
//
// The C library's differ in their last bits between libraries and, by fused products, between
// processors. These are Taylor series after a reduction of the argument, made of +, -, *, / and
// bits alone, within 2 units in the last place (tests/native/test_elementary.py). No branches, so
// that loops over them are vectorised.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fdrsvm::elementary {

namespace detail {

// The sum of a number and a much smaller one.
struct Pair {
    double high, low;
};

// c0 + x (c1 + x (c2 + ...)).
template <class... Rest>
inline double polynomial(double x, double c0, Rest... rest) {
    if constexpr (sizeof...(rest) == 0)
        return c0;
    else
        return c0 + x * polynomial(x, rest...);
}

constexpr double over_factorial(int n) { return n == 0 ? 1.0 : over_factorial(n - 1) / n; }

// Adding it leaves a whole number in the last bits of the sum, for |x| < 2^51.
inline constexpr double kShift = 0x1.8p52;
inline double nearest_whole(double x) { return (x + kShift) - kShift; }
inline std::uint64_t last_bits(double whole) {
    return std::bit_cast<std::uint64_t>(whole + kShift);
}

// The first 26 bits or so: products of two such numbers are exact.
inline double first_half(double x) {
    const double scaled = 0x8000001p0 * x;
    return scaled - (scaled - x);
}

inline constexpr double kLn2High = 0x1.62e42feep-1;  // 32 bits: whole multiples are exact
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// exp(high + low); 0 where the result would not be a normal number.
inline double exp_of(Pair x) {
    const double n = nearest_whole(x.high * 0x1.71547652b82fep0);
    const double high = x.high - n * kLn2High, low = n * kLn2Low - x.low;
    const double r = high - low, square = r * r;
    const double even = polynomial(square, 0.5, over_factorial(4), over_factorial(6),
                                   over_factorial(8), over_factorial(10), over_factorial(12));
    const double odd = polynomial(square, over_factorial(3), over_factorial(5), over_factorial(7),
                                  over_factorial(9), over_factorial(11), over_factorial(13));
    const double mantissa = 1.0 + (high + (square * (even + r * odd) - low));
    // In two steps, since 2^1024 is no number but half of it times two may be.
    const double half_scale = std::bit_cast<double>((last_bits(n) + 1022) << 52);
    const double value = mantissa * half_scale * 2.0;
    const double bounded = x.high < 709.79 ? value : std::numeric_limits<double>::infinity();
    return x.high < -708.0 ? 0.0 : (x.high == x.high ? bounded : x.high);
}

// log x = high + low, to about 2^-57, for a normal x > 0.
inline Pair log_parts(double x) {
    // x = 2^k m with m from sqrt(1/2) to sqrt(2).
    constexpr std::uint64_t kOne = 0x3ff0000000000000, kRootHalf = 0x3fe6a09e00000000;
    const std::uint64_t shifted = std::bit_cast<std::uint64_t>(x) + (kOne - kRootHalf);
    const double k = std::bit_cast<double>((shifted >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
    const double m = std::bit_cast<double>((shifted & 0xfffffffffffff) + kRootHalf);
    // With s = f / (2 + f): log(1 + f) = 2 atanh s = f - f^2 / 2 + s (f^2 / 2 + 2 s^2 / 3 + ...).
    const double f = m - 1.0, half_square = 0.5 * f * f;
    const double s = f / (2.0 + f), z = s * s, w = z * z;
    const double odd = polynomial(w, 2.0 / 3, 2.0 / 7, 2.0 / 11, 2.0 / 15, 2.0 / 19, 2.0 / 23);
    const double even = polynomial(w, 2.0 / 5, 2.0 / 9, 2.0 / 13, 2.0 / 17, 2.0 / 21);
    const double rest = s * (half_square + (z * odd + w * even));
    const double first = f - half_square, first_error = (f - first) - half_square;
    const double whole = k * kLn2High, high = whole + first;
    return {high, ((whole - high) + first) + (first_error + (rest + k * kLn2Low))};
}

}  // namespace detail

// e^x; 0 below -708, where results stop being normal numbers.
inline double exp(double x) { return detail::exp_of({x, 0.0}); }

// The natural logarithm of a normal number above 0; nan for what is not above 0.
inline double log(double x) {
    const detail::Pair parts = detail::log_parts(x);
    return x > 0.0 ? parts.high + parts.low : std::numeric_limits<double>::quiet_NaN();
}

// x^exponent for a normal x above 0; nan for an x that is not above 0.
inline double power(double x, double exponent) {
    using namespace detail;
    const Pair parts = log_parts(x);
    const double log_x = parts.high + parts.low, log_rest = (parts.high - log_x) + parts.low;
    // exponent * log_x and what rounding takes from it
    const double a = first_half(exponent), b = first_half(log_x);
    const double a_rest = exponent - a, b_rest = log_x - b, product = exponent * log_x;
    const double error = ((a * b - product) + (a * b_rest + a_rest * b)) + a_rest * b_rest;
    const double value = exp_of({product, error + exponent * log_rest});
    return x > 0.0 ? value : std::numeric_limits<double>::quiet_NaN();
}

// Hyperbolic tangent.
inline double tanh(double x) {
    using namespace detail;
    const double size = std::fabs(x), square = x * x;
    const double sinh_rest =
        polynomial(square, over_factorial(3), over_factorial(5), over_factorial(7),
                   over_factorial(9), over_factorial(11), over_factorial(13), over_factorial(15));
    const double cosh_rest =
        polynomial(square, 0.5, over_factorial(4), over_factorial(6), over_factorial(8),
                   over_factorial(10), over_factorial(12), over_factorial(14), over_factorial(16));
    // tanh x = x - x (cosh x - sinh(x) / x) / cosh x: what is rounded most is a small part.
    const double excess = square * (cosh_rest - sinh_rest);
    const double near = size - size * (excess / (1.0 + square * cosh_rest));
    const double far = 1.0 - 2.0 / (exp(2.0 * size) + 1.0);
    return std::copysign(size < 0.55 ? near : far, x);
}

struct SineCosine {
    double sine, cosine;
};

// Both for |x| up to 2^20; beyond that digits are lost, as multiples of pi / 2 are not exact.
inline SineCosine sine_cosine(double x) {
    using namespace detail;
    constexpr double kFirst = 0x1.921fb544p0, kSecond = 0x1.0b4611a6p-34,
                     kThird = 0x1.3198a2e037073p-69;  // of pi / 2; 33 bits each, then the rest
    const double n = nearest_whole(x * 0x1.45f306dc9c883p-1);
    // x - n pi / 2 = r + rest
    const double a = x - n * kFirst, b = n * kSecond, sum = a - b;
    const double back = sum - a, error = (a - (sum - back)) - (b + back);
    const double tail = error - n * kThird;
    const double r = sum + tail, rest = (sum - r) + tail;
    const double z = r * r;
    const double sine_rest = polynomial(
        z, -over_factorial(3), over_factorial(5), -over_factorial(7), over_factorial(9),
        -over_factorial(11), over_factorial(13), -over_factorial(15), over_factorial(17));
    const double cosine_rest =
        polynomial(z, over_factorial(4), -over_factorial(6), over_factorial(8), -over_factorial(10),
                   over_factorial(12), -over_factorial(14), over_factorial(16));
    const double half = 0.5 * z, high = 1.0 - half;
    const double sine = r + (r * z * sine_rest + rest * (1.0 - half));
    const double cosine = high + (((1.0 - high) - half) + (z * z * cosine_rest - r * rest));
    const std::uint64_t quarter = last_bits(n), sign = 0x8000000000000000;
    const bool swapped = (quarter & 1) != 0;
    const auto with_sign = [&](double value, std::uint64_t negative) {
        return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) ^
                                     ((negative << 62) & sign));
    };
    return {with_sign(swapped ? cosine : sine, quarter),
            with_sign(swapped ? sine : cosine, quarter + 1)};
}

}  // namespace fdrsvm::elementary
