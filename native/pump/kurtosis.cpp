#include "kurtosis.hpp"

#include <algorithm>
#include <numbers>

#include "../core/elementary.hpp"

namespace fdrsvm::pump {

namespace {

constexpr size_t kTogether = 4;  // segments

size_t rounded_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

// Sums of pairs times table for four segments and eight frequencies.
struct Products {
    Lanes of[kTogether];

    Products(const double* pairs, const double* table, size_t n_pairs) {
        for (Lanes& each : of) each = Lanes::all(0.0);
        for (size_t j = 0; j < n_pairs; ++j) {
            const Lanes row = Lanes::load(table + j * kLanes);
            for (size_t s = 0; s < kTogether; ++s)
                of[s] += Lanes::all(pairs[j * kTogether + s]) * row;
        }
    }
};

}  // namespace

KurtosisPlan::KurtosisPlan(ConstVector window, size_t hop, Bins bins)
    : size_(window.size()), hop_(hop), pairs_((window.size() + 1) / 2), bins_(bins) {
    const size_t padded = rounded_up(bins.count, kLanes), n_points = 8 * size_;
    cosines_ = Buffer<>(padded * pairs_, 0.0);
    sines_ = Buffer<>(padded * pairs_, 0.0);
    for (size_t k = 0; k < bins.count; ++k)
        for (size_t j = 0; j < pairs_; ++j) {
            const size_t twice_distance = size_ - 1 - 2 * j;
            const size_t turned = twice_distance * (bins.first + k) % (2 * n_points);
            const double angle =
                static_cast<double>(turned) * (std::numbers::pi / static_cast<double>(n_points));
            const auto [sine, cosine] = elementary::sine_cosine(angle);
            const size_t at = (k / kLanes * pairs_ + j) * kLanes + k % kLanes;
            cosines_[at] = window[j] * cosine;
            sines_[at] = window[j] * sine;
        }
}

// [four segments][pair][segment], and zeros for segments that there are not.
void KurtosisPlan::fill_pairs(ConstVector record, size_t n_segments, Vector sums,
                              Vector differences) const {
    for (size_t segment = 0; segment < n_segments; ++segment) {
        const double* x = record.data() + segment * hop_;
        const size_t start = segment / kTogether * pairs_ * kTogether + segment % kTogether;
        for (size_t j = 0; j < pairs_; ++j) {
            const double early = x[j], late = x[size_ - 1 - j];
            const bool alone = 2 * j == size_ - 1;
            sums[start + j * kTogether] = alone ? early : late + early;
            differences[start + j * kTogether] = alone ? 0.0 : late - early;
        }
    }
}

void KurtosisPlan::fill(ConstMatrix records, Matrix kurtosis) const {
    const size_t n_segments = (records.columns - size_) / hop_ + 1;
    const size_t padded = rounded_up(n_segments, kTogether), group = kTogether * pairs_;
    const Lanes count = Lanes::all(static_cast<double>(n_segments));
    Buffer<> sums(padded * pairs_, 0.0), differences(padded * pairs_, 0.0);
    for (size_t n = 0; n < records.rows; ++n) {
        fill_pairs(records[n], n_segments, sums, differences);
        for (size_t first = 0; first < bins_.count; first += kLanes) {
            Lanes second = Lanes::all(0.0), fourth = Lanes::all(0.0);
            for (size_t at = 0; at < padded * pairs_; at += group) {
                const Products real(&sums[at], &cosines_[first * pairs_], pairs_);
                const Products imaginary(&differences[at], &sines_[first * pairs_], pairs_);
                for (size_t s = 0; s < kTogether; ++s) {
                    const Lanes power = real.of[s] * real.of[s] + imaginary.of[s] * imaginary.of[s];
                    second += power;
                    fourth += power * power;
                }
            }
            double ratio[kLanes], square[kLanes];
            (second * second).store(square);
            (count * fourth / (second * second)).store(ratio);
            // A silent frequency has no kurtosis and is never the largest.
            for (size_t k = 0; k < std::min(kLanes, bins_.count - first); ++k)
                kurtosis[n][first + k] = square[k] > 0.0 ? ratio[k] - 2.0 : -2.0;
        }
    }
}

}  // namespace fdrsvm::pump
