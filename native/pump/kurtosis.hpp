// Spectral kurtosis of records cut into overlapping segments.
//
// A segment's spectrum is taken about its middle, where the sum of each pair of samples at equal
// distance carries the cosine and their difference the sine. That is half the work of the
// transform, and quicker than an FFT where the length has a large prime factor (1208 = 8 x 151 for
// the pump).
//
// Sums   over the pairs from the outermost one inwards, over the segments from the first one on
// Cost   two products per pair, segment and frequency; four segments and eight frequencies at a
//        time, so that sums stay in registers
#pragma once

#include "../core/lanes.hpp"

namespace fdrsvm::pump {

// Frequencies `first_bin`, `first_bin` + 1 ... of segments that zeros make eight times as long.
struct Bins {
    size_t first, count;
};

class KurtosisPlan {
  public:
    // The window has the size of a segment; segments start `hop` samples apart.
    KurtosisPlan(ConstVector window, size_t hop, Bins bins);

    // Sets kurtosis = mean |S|^4 / (mean |S|^2)^2 - 2, where the means are over a record's
    // segments. A row per record, a column per frequency.
    void fill(ConstMatrix records, Matrix kurtosis) const;

    size_t segment_size() const { return size_; }
    size_t n_bins() const { return bins_.count; }

  private:
    void fill_pairs(ConstVector record, size_t n_segments, Vector sums, Vector differences) const;

    size_t size_, hop_, pairs_;
    Bins bins_;
    Buffer<> cosines_, sines_;  // window times cosine or sine: [eight frequencies][pair][frequency]
};

}  // namespace fdrsvm::pump
