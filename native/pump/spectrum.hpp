// Power of records on a fine grid of frequencies: Bluestein's transform.
//
// Grid      frequency first + k * spacing, k = 0, 1 ..., in turns per sample
// Method    k n = (k^2 + n^2 - (k - n)^2) / 2 makes the Fourier sum a convolution with a chirp,
//           which two transforms of a power of two take. The factor of k has modulus 1 and is left
//           out, as only powers are wanted.
// Order     The forward transform leaves its result in bit-reversed order and the backward one
//           takes it so; nothing is ever put in order.
// Cost      per record two transforms of the power of two above samples plus frequencies
#pragma once

#include "../core/lanes.hpp"

namespace fdrsvm::pump {

struct Grid {
    double first, spacing;
    size_t count;
};

// Real and imaginary parts.
struct ComplexBuffer {
    Buffer<> real, imaginary;

    explicit ComplexBuffer(size_t size) : real(size, 0.0), imaginary(size, 0.0) {}
};

class SpectrumPlan {
  public:
    // Records have as many samples as the window.
    SpectrumPlan(ConstVector window, const Grid& grid);

    // Sets power = |sum of window * record * exp(-2 pi i frequency n)|^2; a row per record.
    void fill(ConstMatrix records, Matrix power) const;

    size_t n_samples() const { return n_samples_; }
    size_t n_frequencies() const { return n_frequencies_; }

  private:
    void transform(ComplexBuffer& x) const;
    void transform_back(ComplexBuffer& x) const;

    size_t n_samples_, n_frequencies_, size_;
    ComplexBuffer twiddles_;  // of the largest stage, then of one half its size, and so on
    ComplexBuffer weights_;   // what a record is multiplied with
    ComplexBuffer chirp_;     // transformed, over `size_`
};

}  // namespace fdrsvm::pump
