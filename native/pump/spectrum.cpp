#include "spectrum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "../core/elementary.hpp"

namespace fdrsvm::pump {

namespace {

constexpr size_t kInnermost = 4;  // numbers of the last two stages, which are taken as one

elementary::SineCosine at_turns(double turns) {
    return elementary::sine_cosine(2.0 * std::numbers::pi * (turns - std::floor(turns)));
}

struct Halves {
    double *low_real, *low_imaginary, *high_real, *high_imaginary;
    const double *cosine, *sine;
};

Halves halves_at(ComplexBuffer& x, size_t start, size_t half, const ComplexBuffer& twiddles) {
    const size_t table = twiddles.real.size() - 2 * half;
    return {&x.real[start],        &x.imaginary[start],
            &x.real[start + half], &x.imaginary[start + half],
            &twiddles.real[table], &twiddles.imaginary[table]};
}

template <class Number>
Number load(const double* from) {
    if constexpr (std::is_same_v<Number, double>)
        return *from;
    else
        return Number::load(from);
}
void store(double value, double* to) { *to = value; }
void store(const Lanes& value, double* to) { value.store(to); }

// Low and high part become their sum and their difference times exp(-i angle).
template <class Number>
void split(const Halves& of, size_t half) {
    for (size_t j = 0; j < half; j += sizeof(Number) / sizeof(double)) {
        const auto a = load<Number>(of.low_real + j), b = load<Number>(of.low_imaginary + j);
        const auto c = load<Number>(of.high_real + j), d = load<Number>(of.high_imaginary + j);
        const auto cosine = load<Number>(of.cosine + j), sine = load<Number>(of.sine + j);
        const auto real = a - c, imaginary = b - d;
        store(a + c, of.low_real + j);
        store(b + d, of.low_imaginary + j);
        store(real * cosine + imaginary * sine, of.high_real + j);
        store(imaginary * cosine - real * sine, of.high_imaginary + j);
    }
}

// The inverse of `split`, but for a factor 2.
template <class Number>
void join(const Halves& of, size_t half) {
    for (size_t j = 0; j < half; j += sizeof(Number) / sizeof(double)) {
        const auto a = load<Number>(of.low_real + j), b = load<Number>(of.low_imaginary + j);
        const auto c = load<Number>(of.high_real + j), d = load<Number>(of.high_imaginary + j);
        const auto cosine = load<Number>(of.cosine + j), sine = load<Number>(of.sine + j);
        const auto real = c * cosine - d * sine, imaginary = d * cosine + c * sine;
        store(a + real, of.low_real + j);
        store(b + imaginary, of.low_imaginary + j);
        store(a - real, of.high_real + j);
        store(b - imaginary, of.high_imaginary + j);
    }
}

void split_innermost(double* real, double* imaginary) {
    const double a = real[0] + real[2], b = real[1] + real[3], c = real[0] - real[2],
                 d = real[1] - real[3];
    const double e = imaginary[0] + imaginary[2], f = imaginary[1] + imaginary[3],
                 g = imaginary[0] - imaginary[2], h = imaginary[1] - imaginary[3];
    real[0] = a + b, real[1] = a - b, real[2] = c + h, real[3] = c - h;
    imaginary[0] = e + f, imaginary[1] = e - f, imaginary[2] = g - d, imaginary[3] = g + d;
}

void join_innermost(double* real, double* imaginary) {
    const double a = real[0] + real[1], b = real[0] - real[1], c = real[2] + real[3],
                 d = real[2] - real[3];
    const double e = imaginary[0] + imaginary[1], f = imaginary[0] - imaginary[1],
                 g = imaginary[2] + imaginary[3], h = imaginary[2] - imaginary[3];
    real[0] = a + c, real[1] = b - h, real[2] = a - c, real[3] = b + h;
    imaginary[0] = e + g, imaginary[1] = f + d, imaginary[2] = e - g, imaginary[3] = f - d;
}

void multiply(ComplexBuffer& x, const ComplexBuffer& by) {
    for (size_t j = 0; j < x.real.size(); ++j) {
        const double real = x.real[j] * by.real[j] - x.imaginary[j] * by.imaginary[j];
        x.imaginary[j] = x.real[j] * by.imaginary[j] + x.imaginary[j] * by.real[j];
        x.real[j] = real;
    }
}

}  // namespace

SpectrumPlan::SpectrumPlan(ConstVector window, const Grid& grid)
    : n_samples_(window.size()),
      n_frequencies_(grid.count),
      size_(std::max(kInnermost, std::bit_ceil(window.size() + grid.count - 1))),
      twiddles_(size_),
      weights_(n_samples_),
      chirp_(size_) {
    for (size_t half = size_ / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; ++j) {
            const auto [sine, cosine] =
                at_turns(static_cast<double>(j) / static_cast<double>(2 * half));
            twiddles_.real[size_ - 2 * half + j] = cosine;
            twiddles_.imaginary[size_ - 2 * half + j] = sine;
        }
    const auto chirp_turns = [&](size_t n) {
        return 0.5 * grid.spacing * (static_cast<double>(n) * static_cast<double>(n));
    };
    for (size_t n = 0; n < n_samples_; ++n) {
        const auto [sine, cosine] = at_turns(grid.first * static_cast<double>(n) + chirp_turns(n));
        weights_.real[n] = window[n] * cosine;
        weights_.imaginary[n] = -window[n] * sine;
    }
    const double scale = 1.0 / static_cast<double>(size_);
    const auto set_chirp = [&](size_t place, size_t n) {
        const auto [sine, cosine] = at_turns(chirp_turns(n));
        chirp_.real[place] = scale * cosine;
        chirp_.imaginary[place] = scale * sine;
    };
    for (size_t k = 0; k < n_frequencies_; ++k) set_chirp(k, k);
    for (size_t n = 1; n < n_samples_; ++n) set_chirp(size_ - n, n);
    transform(chirp_);
}

void SpectrumPlan::transform(ComplexBuffer& x) const {
    for (size_t half = size_ / 2; half >= kInnermost; half /= 2)
        for (size_t start = 0; start < size_; start += 2 * half)
            half < kLanes ? split<double>(halves_at(x, start, half, twiddles_), half)
                          : split<Lanes>(halves_at(x, start, half, twiddles_), half);
    for (size_t start = 0; start < size_; start += kInnermost)
        split_innermost(&x.real[start], &x.imaginary[start]);
}

void SpectrumPlan::transform_back(ComplexBuffer& x) const {
    for (size_t start = 0; start < size_; start += kInnermost)
        join_innermost(&x.real[start], &x.imaginary[start]);
    for (size_t half = kInnermost; half < size_; half *= 2)
        for (size_t start = 0; start < size_; start += 2 * half)
            half < kLanes ? join<double>(halves_at(x, start, half, twiddles_), half)
                          : join<Lanes>(halves_at(x, start, half, twiddles_), half);
}

void SpectrumPlan::fill(ConstMatrix records, Matrix power) const {
    ComplexBuffer x(size_);
    for (size_t n = 0; n < records.rows; ++n) {
        for (size_t j = 0; j < n_samples_; ++j) {
            x.real[j] = records[n][j] * weights_.real[j];
            x.imaginary[j] = records[n][j] * weights_.imaginary[j];
        }
        std::fill_n(&x.real[n_samples_], size_ - n_samples_, 0.0);
        std::fill_n(&x.imaginary[n_samples_], size_ - n_samples_, 0.0);
        transform(x);
        multiply(x, chirp_);
        transform_back(x);
        for (size_t k = 0; k < n_frequencies_; ++k)
            power[n][k] = x.real[k] * x.real[k] + x.imaginary[k] * x.imaginary[k];
    }
}

}  // namespace fdrsvm::pump
