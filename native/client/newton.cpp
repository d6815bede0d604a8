#include "newton.hpp"

#include <algorithm>
#include <cmath>

#include "../core/linear_algebra.hpp"

namespace fdrsvm::client {

namespace {

constexpr size_t kBlock = 256;     // rows of a Gram product at a time, to stay in the cache
// Width of a system that is worth solving by conjugate gradients: below it one factor is cheaper
// than a few products.
constexpr size_t kMinWidth = 100;
// Samples near a kink beyond which their kernel matrix costs more than it saves. Where w itself has
// no curvature the system is far worse conditioned, and the kernel matrix pays for longer.
constexpr size_t kMaxCurvedKernel = 500, kMaxKernel = 3000;
// A direction to three digits is enough: the line search needs descent, not an exact step.
constexpr double kRelativeTol = 1e-3;
constexpr int kMaxSteps = 500;

}  // namespace

void System::build(const Stage& stage, const Point& point, const ConeProjection& projection) {
    const Terms& terms = space_.terms;
    double lam_curve = 0.0, lam_own = 0.0;
    for (size_t k = 0; k < band_.count; ++k) {
        const double place = band_.place[k];
        // A sample whose projection moves on one edge contributes one rank-one term of weight
        // penalty * mass. Inside the triangle kept and flipped move independently, and on the full
        // edge against each other: both times kept falls with the margin as flipped grows, which
        // is twice the weight along (row, -kappa/2).
        const bool is_edge = place == kKeptEdge || place == kFlippedEdge;
        const double scale = (is_edge ? 1.0 : 2.0) * (stage.penalty * terms.mass[band_.sample[k]]);
        const double tilt = place == kKeptEdge      ? 0.0
                            : place == kFlippedEdge ? terms.kappa
                                                    : 0.5 * terms.kappa;
        const double curve = scale * tilt * tilt;
        // Inside, kept does not depend on lam: the two terms r r' differ only in lam's own entry,
        // which the common direction (row, -kappa/2) misses by this much.
        if (place == kInside) lam_own += curve;
        lam_curve += curve;
        band_.weight[k] = scale;
        band_.tilt[k] = tilt;
    }
    // The cone's multipliers (u, sigma) are a projection too; its derivative is diagonal plus rank
    // two for every transport norm, so it costs O(P).
    cone_penalty_ = stage.cone_penalty;
    ConeCurvature& cone = space_.cone;
    cone_curvature(terms, space_.shifted, point.sigma - cone_penalty_ * point.w[terms.width],
                   projection, space_.q, cone);
    for (size_t j = 0; j < space_.q; ++j) {
        // `own` is what a coordinate has without the cone; the preconditioner needs it apart.
        space_.own[j] = stage.prox[j] + (j == terms.width ? lam_own : space_.curvature[j]);
        space_.diagonal[j] = space_.own[j] + cone_penalty_ * cone.diagonal[j];
    }
    // Where lam has no curvature of its own, but for the vanishing proximal term, Newton would send
    // it to infinity; the caller then searches for lam alone.
    const double curved_by_cone =
        cone.diagonal[terms.width] + cone.weight[0] * std::fabs(cone.low[0][terms.width]);
    lam_is_curved_ = lam_curve + curved_by_cone > 0.0;
}

void System::solve() {
    double* x = space_.direction;
    for (size_t j = 0; j < space_.q; ++j) x[j] = -space_.gradient[j];
    // With few samples near a kink their kernel matrix is smaller than the Gram matrix.
    const size_t width = space_.terms.width;
    if (space_.terms.wide || (width > kMinWidth && 2 * band_.count < width))
        solve_iteratively(x);
    else
        solve_direct(x);
}

// Rows first <= k < last of the band as roots of their rank-one terms, so that the matrix is a Gram
// matrix and the fast product can be used.
void System::pack(size_t first, size_t last) {
    const ConstMatrix& dense = space_.terms.rows->dense;
    const size_t q = space_.q, width = space_.terms.width;
    for (size_t k = first; k < last; ++k) {
        const double root = std::sqrt(band_.weight[k]);
        const double* row = dense.data + size_t(band_.sample[k]) * dense.stride;
        double* to = packed_.data() + (k - first) * q;
        for (size_t j = 0; j < dense.stride; ++j) to[j] = root * row[j];
        // lam may fall into a further group of eight than the row has.
        if (dense.stride < q) std::fill(to + dense.stride, to + q, 0.0);
        to[width] = -root * band_.tilt[k];
    }
}

// Sample by sample, upper half only: a Gram product over dense tiles would be mostly zeros.
void System::add_sparse_rows(Matrix H) const {
    const Rows& rows = *space_.terms.rows;
    const size_t width = space_.terms.width;
    for (size_t k = 0; k < band_.count; ++k) {
        const std::int32_t start = rows.indptr[band_.sample[k]],
                           stop = rows.indptr[band_.sample[k] + 1];
        const double weight = band_.weight[k], tilt = band_.tilt[k];
        for (std::int32_t i = start; i < stop; ++i) {  // indices are sorted
            double* row = H.data + size_t(rows.indices[i]) * H.stride;
            const double scaled = weight * rows.data[i];
            for (std::int32_t j = i; j < stop; ++j) row[rows.indices[j]] += scaled * rows.data[j];
            row[width] -= scaled * tilt;
        }
        H.data[width * H.stride + width] += weight * tilt * tilt;
    }
}

// The negative rank-one term of the cone; a Gram product cannot subtract.
void System::subtract_low_row(Matrix H) const {
    const ConeCurvature& cone = space_.cone;
    if (cone.weight[1] == 0.0) return;
    for (size_t i = 0; i < H.rows; ++i) {
        const double scaled = cone_penalty_ * cone.weight[1] * cone.low[1][i];
        if (scaled != 0.0)
            add_scaled(H.data + i * H.stride + i, scaled, cone.low[1] + i, H.stride - i);
    }
}

void System::form() {
    const size_t q = space_.q, size = space_.terms.width + 1;
    // Only solves that come here need the memory; it then serves all stages.
    if (matrix_.size() == 0) {
        matrix_ = Buffer<>(size * q);
        packed_ = Buffer<>(std::min(kBlock, space_.n + 1) * q);
    }
    const Matrix H{matrix_.data(), size, size, q};
    std::fill_n(H.data, size * q, 0.0);
    const ConeCurvature& cone = space_.cone;
    // The positive rank-one term of the cone is one more row.
    const double root = std::sqrt(cone_penalty_ * cone.weight[0]);
    for (size_t j = 0; j < q; ++j) packed_[j] = root * cone.low[0][j];
    add_gram({packed_.data(), size_t(root > 0.0), size, q}, H);
    if (space_.terms.rows->is_sparse()) {
        add_sparse_rows(H);
    } else {
        // Block after block in order, so that each entry is one sum over the band in its order.
        for (size_t first = 0; first < band_.count; first += kBlock) {
            const size_t last = std::min(first + kBlock, band_.count);
            pack(first, last);
            add_gram({packed_.data(), last - first, size, q}, H);
        }
    }
    subtract_low_row(H);
    for (size_t j = 0; j < size; ++j) H.data[j * q + j] += space_.diagonal[j];
}

// A pivot that vanishes in rounding drops its direction (linear_algebra.hpp): at epsilon = 0 the
// matrix may be singular, and the step then simply does not use that direction.
void System::solve_direct(double* x) {
    form();
    const size_t size = space_.terms.width + 1;
    const Matrix H{matrix_.data(), size, size, space_.q};
    factorise(H);
    solve_factorised(H, x);
}

// Sets out = H x, from the band's rows themselves: for conjugate gradients H is never formed.
void System::apply(const double* x, double* out) const {
    const Rows& rows = *space_.terms.rows;
    const size_t lam = space_.terms.width;
    // lam's entry is summed apart: the rows may be padded over its place.
    double out_lam = space_.diagonal[lam] * x[lam];
    for (size_t j = 0; j < space_.q; ++j) out[j] = space_.diagonal[j] * x[j];
    for (size_t k = 0; k < band_.count; ++k) {
        const double tilt = band_.tilt[k];
        const double along = row_dot(rows, band_.sample[k], x) - tilt * x[lam];
        const double scaled = band_.weight[k] * along;
        add_row(rows, band_.sample[k], scaled, out);
        out_lam -= scaled * tilt;
    }
    out[lam] = out_lam;
    const ConeCurvature& cone = space_.cone;
    for (int i = 0; i < 2; ++i)
        if (cone.weight[i] != 0.0)
            add_scaled(out, cone_penalty_ * cone.weight[i] * dot(cone.low[i], x, space_.q),
                       cone.low[i], space_.q);
}

// An approximate inverse of Newton's matrix: diag(inverse) if the band is large. Otherwise the
// exact one, by Woodbury's formula: H = B + R' D R, where R has the band's rows and the cone's
// positive rank-one row, so H^-1 = B^-1 - B^-1 R' (D^-1 + R B^-1 R')^-1 R B^-1. `factor` is the
// Cholesky factor of the kernel matrix in the middle, as large as the band and not as the features.
// B = diagonal + the negative rank-one term has the inverse diag(inverse) + bend bent bent', by
// Sherman and Morrison. Exact up to rounding, it makes one or two steps enough.
class Preconditioner {
  public:
    explicit Preconditioner(const System& system)
        : system_(system),
          q_(system.space_.q),
          count_(system.band_.count),
          inverse_(q_, 0.0),
          bent_(q_, 0.0) {
        // Measured: with curvature, the limit takes 2000 x 30 000 from 3.2 to 0.46 s (l1).
        const bool is_curved = system.space_.terms.theta > 0.0;
        if (count_ <= (is_curved ? kMaxCurvedKernel : kMaxKernel))
            factorise_kernel();
        else
            invert_diagonal();
    }

    // Sets z = an approximation of H^-1 r.
    void apply(const double* r, double* z) {
        std::fill_n(z, q_, 0.0);
        apply_base(r, 1.0, z);
        if (size_ == 0) return;
        // z = B^-1 r; now the correction B^-1 R' (kernel)^-1 R z is subtracted.
        along_rows(z, share_.data());
        std::fill(share_.data() + size_, share_.data() + stride_, 0.0);
        solve_factorised({factor_.data(), size_, size_, stride_}, share_.data());
        const Space& space = system_.space_;
        const size_t lam = space.terms.width;
        std::fill_n(correction_.data(), q_, 0.0);
        double correction_lam = 0.0;
        for (size_t k = 0; k < count_; ++k) {
            add_row(*space.terms.rows, system_.band_.sample[k], share_[k], correction_.data());
            correction_lam -= share_[k] * system_.band_.tilt[k];
        }
        correction_[lam] = correction_lam;
        if (size_ > count_) add_scaled(correction_.data(), share_[count_], space.cone.low[0], q_);
        apply_base(correction_.data(), -1.0, z);
    }

  private:
    const System& system_;
    size_t q_, count_;
    size_t size_ = 0, stride_ = 0;  // of the kernel matrix
    Buffer<> inverse_, bent_, factor_, share_, correction_;
    double bend_ = 0.0;

    void invert_diagonal() {
        const Space& space = system_.space_;
        const ConeCurvature& cone = space.cone;
        const size_t lam = space.terms.width;
        // H's own diagonal, rank-one terms included.
        std::copy_n(space.diagonal, q_, inverse_.data());
        double scale_lam = inverse_[lam];
        for (size_t k = 0; k < count_; ++k) {
            add_squared_row(*space.terms.rows, system_.band_.sample[k], system_.band_.weight[k],
                            inverse_.data());
            scale_lam += system_.band_.weight[k] * system_.band_.tilt[k] * system_.band_.tilt[k];
        }
        inverse_[lam] = scale_lam;
        for (size_t j = 0; j <= lam; ++j) {
            for (int i = 0; i < 2; ++i)
                inverse_[j] +=
                    system_.cone_penalty_ * cone.weight[i] * cone.low[i][j] * cone.low[i][j];
            // The negative term may cancel an entry: any positive number is a valid preconditioner.
            inverse_[j] = 1.0 / larger(inverse_[j], 1e-300);
        }
    }

    void factorise_kernel() {
        const Space& space = system_.space_;
        const ConeCurvature& cone = space.cone;
        const double cone_penalty = system_.cone_penalty_;
        const size_t width = space.terms.width + 1;
        Buffer<> pushed(q_, 0.0);
        double square = 0.0, remaining = 0.0;
        for (size_t j = 0; j < width; ++j) {
            inverse_[j] = 1.0 / space.diagonal[j];
            bent_[j] = inverse_[j] * cone.low[1][j];
            pushed[j] = inverse_[j] * cone.low[0][j];
            square += cone.low[1][j] * cone.low[1][j];
            remaining += cone.low[1][j] * space.own[j] * bent_[j];
        }
        // remaining / square is 1 - cone_penalty |low_weight| low' inverse low, the denominator of
        // Sherman and Morrison's formula. As a difference it would cancel to nothing where the
        // cone's curvature dominates; as this sum of positive terms it keeps its digits, [stage].
        // At remaining = 0 the base is singular; without the bend it is still a valid
        // preconditioner, only a weaker one.
        bend_ = remaining > 0.0 ? -cone_penalty * cone.weight[1] * square / remaining : 0.0;
        const bool has_low = cone_penalty * cone.weight[0] > 0.0;
        size_ = count_ + size_t(has_low);
        stride_ = padded(size_);
        factor_ = Buffer<>(size_ * stride_, 0.0);
        share_ = Buffer<>(stride_, 0.0);
        correction_ = Buffer<>(q_);
        if (size_ == 0) return;
        add_kernel();
        // To the rows' own products come lam's column, the bend of B^-1, and D^-1 on the diagonal.
        Buffer<> along(stride_, 0.0);
        if (has_low) {
            along_rows(pushed.data(), along.data());
            for (size_t i = 0; i < size_; ++i) factor_[i * stride_ + count_] += along[i];
            factor_[count_ * stride_ + count_] += 1.0 / (cone_penalty * cone.weight[0]);
            std::fill_n(along.data(), stride_, 0.0);
        }
        if (bend_ > 0.0) along_rows(bent_.data(), along.data());
        for (size_t i = 0; i < size_; ++i) {
            double* row = factor_.data() + i * stride_;
            if (i < count_) {
                add_scaled(row + i, inverse_[width - 1] * system_.band_.tilt[i],
                           system_.band_.tilt + i, count_ - i);
                row[i] += 1.0 / system_.band_.weight[i];
            }
            add_scaled(row + i, bend_ * along[i], along.data() + i, size_ - i);
        }
        factorise({factor_.data(), size_, size_, stride_});
    }

    // Adds rows[band_i] diag(inverse) rows[band_k]' to the upper half of the factor's room.
    void add_kernel() {
        const Rows& rows = *system_.space_.terms.rows;
        if (rows.is_sparse())
            add_sparse_kernel(rows);
        else
            add_dense_kernel(rows);
    }

    // As a Gram matrix over the features: the band's rows are transposed a block of features at a
    // time, so that the fast product can be used and the block stays in the cache.
    void add_dense_kernel(const Rows& rows) {
        const size_t block = std::min(kBlock, rows.width);
        Buffer<> packed(block * stride_, 0.0);
        for (size_t first = 0; first < rows.width; first += block) {
            const size_t last = std::min(first + block, rows.width);
            for (size_t j = first; j < last; ++j) {
                const double root = std::sqrt(inverse_[j]);
                double* to = packed.data() + (j - first) * stride_;
                for (size_t i = 0; i < count_; ++i)
                    to[i] =
                        root *
                        rows.dense.data[size_t(system_.band_.sample[i]) * rows.dense.stride + j];
            }
            add_gram({packed.data(), last - first, size_, stride_},
                     {factor_.data(), size_, size_, stride_});
        }
    }

    // One row is scattered into a dense vector, against which the later sparse rows are summed;
    // afterwards only its own entries are cleared, not the whole vector.
    void add_sparse_kernel(const Rows& rows) {
        Buffer<> scattered(q_, 0.0);
        for (size_t i = 0; i < count_; ++i) {
            const std::int32_t start = rows.indptr[system_.band_.sample[i]],
                               stop = rows.indptr[system_.band_.sample[i] + 1];
            for (std::int32_t k = start; k < stop; ++k)
                scattered[rows.indices[k]] += inverse_[rows.indices[k]] * rows.data[k];
            for (size_t c = i; c < count_; ++c)
                factor_[i * stride_ + c] +=
                    row_dot(rows, system_.band_.sample[c], scattered.data());
            for (std::int32_t k = start; k < stop; ++k) scattered[rows.indices[k]] = 0.0;
        }
    }

    // Sets out = R x: the band's rows, then the positive rank-one term's.
    void along_rows(const double* x, double* out) const {
        const Space& space = system_.space_;
        const double x_lam = x[space.terms.width];
        for (size_t k = 0; k < count_; ++k)
            out[k] = row_dot(*space.terms.rows, system_.band_.sample[k], x) -
                     system_.band_.tilt[k] * x_lam;
        if (size_ > count_) out[count_] = dot(space.cone.low[0], x, q_);
    }

    // Sets out += scale * B^-1 r.
    void apply_base(const double* r, double scale, double* out) const {
        for (size_t j = 0; j < q_; ++j) out[j] += scale * inverse_[j] * r[j];
        if (bend_ > 0.0)
            add_scaled(out, scale * bend_ * dot(bent_.data(), r, q_), bent_.data(), q_);
    }
};

// Preconditioned conjugate gradients, which never form H: for many features. Stops on r'z, the
// squared residual in the preconditioner's own norm, so that no further product is needed for it.
void System::solve_iteratively(double* x) const {
    const size_t q = space_.q;
    Preconditioner inverse(*this);
    Buffer<> r(q), z(q), p(q, 0.0), Hp(q);
    // From 0: then the residual is the right-hand side, and every iterate is a descent direction.
    std::copy_n(x, q, r.data());
    std::fill_n(x, q, 0.0);
    double rz = 0.0, goal = -1.0, conjugate = 0.0;
    for (int step = 0; step < kMaxSteps; ++step) {
        inverse.apply(r.data(), z.data());
        const double previous = rz;
        rz = dot(r.data(), z.data(), q);
        if (goal < 0.0)
            goal = kRelativeTol * kRelativeTol * rz;
        else if (rz > goal)
            conjugate = rz / previous;
        if (rz <= goal) break;
        for (size_t j = 0; j < q; ++j) p[j] = z[j] + conjugate * p[j];
        apply(p.data(), Hp.data());
        const double curvature = dot(p.data(), Hp.data(), q);
        // H is positive semidefinite, so this is rounding: x so far is still a descent direction.
        if (curvature <= 0.0) break;
        add_scaled(x, rz / curvature, p.data(), q);
        add_scaled(r.data(), -rz / curvature, Hp.data(), q);
    }
}

}  // namespace fdrsvm::client
