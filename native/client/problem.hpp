// The data of one client's problem, in the unit w' = s w where features have size 1, [unit].
//
//     min over (w, b), lam >= ||w||_*
//         lam epsilon + sum_n p_n max(0, 1 - m_n, 1 + m_n - kappa lam)
//         + (rho/2) ||w - c||^2 + tau ||w||^2 + (rho/2) (b - c_b)^2,      m_n = y_n (w.x_n + b)
//
// Row n is signed, y_n (x_n / s, 1), so m_n is the row times (w, b). Only the centre (c, c_b) is
// missing here: it changes from round to round.
#pragma once

#include <limits>
#include <memory>

#include "../core/norms.hpp"
#include "../core/rows.hpp"

namespace fdrsvm::client {

// The largest magnitude of `size` numbers.
double largest_of(const double* values, size_t size);

// Samples of one client; vectors have zeros up to a multiple of eight.
class Samples {
  public:
    // Signs and scales dense rows. `largest` is the largest magnitude in X.
    Samples(ConstMatrix X, ConstVector y, ConstVector mass, double largest, bool fit_intercept);
    // Takes CSR rows that are signed and divided by `scale` already.
    Samples(const Rows& sparse, ConstVector y, ConstVector mass, double scale);
    // Every `stride`-th sample that has weight, of dense ones.
    Samples(const Samples& all, size_t stride);

    Samples(const Samples&) = delete;
    Samples& operator=(const Samples&) = delete;

    Rows rows;
    Buffer<> mass;
    Buffer<> labels;
    double scale = 1.0;  // s, a power of two

  private:
    Buffer<> values_;
    Buffer<std::int32_t> indices_, indptr_;

    void make_room(size_t count, size_t width);
};

struct Ball {
    double epsilon;
    double kappa;  // inf where labels are trusted
    Norm norm;
};

struct Penalties {
    double rho;
    double tau;
};

// What the solver reads.
struct Terms {
    const Rows* rows;
    const double* mass;
    size_t n_padded;             // samples, up to a multiple of eight
    size_t width;                // of (w, b); lam comes after
    size_t n_normed;             // the norm sees w[:n_normed]; an intercept comes after
    double theta;                // curvature of the quadratic in w ...
    double intercept_curvature;  // ... and in b
    double epsilon;
    double kappa;  // 0 where labels are trusted
    bool flips;
    Norm norm;
    double reach;       // how far, per unit of gradient, a coordinate without curvature may move
    double cone_scale;  // the cone's penalty over that of the samples
    bool wide;          // too many features to form Newton's matrix

    double curvature(size_t j) const { return j < n_normed ? theta : intercept_curvature; }
    bool is_curved() const {
        return theta > 0.0 && (width == n_normed || intercept_curvature > 0.0);
    }
};

class Problem {
  public:
    Problem(std::shared_ptr<const Samples> samples, bool fit_intercept, const Ball& ball,
            const Penalties& penalties);

    std::shared_ptr<const Samples> samples;
    bool fit_intercept;
    Ball given;           // in the caller's unit
    Ball ball;            // in that of the rows
    Penalties penalties;  // in that of the rows
    double intercept_rho;

    size_t n_features() const { return samples->rows.width - size_t(fit_intercept); }
    Terms terms() const { return terms_of(*samples); }
    // The same ball and penalties around a part of the samples.
    Terms terms_of(const Samples& subset) const;
};

}  // namespace fdrsvm::client
