#include "solve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fdrsvm::client {

namespace {

// Penalties are in 1/margin: a sample counts as near a kink within 1/penalty. A cold start begins
// with a wide band, in which Newton sees most samples as smooth; a warm one already knows which
// side of the margin nearly every sample is on.
constexpr double kColdPenalty = 3.0, kPrimedPenalty = 30.0, kWarmPenalty = 1000.0;
// The method aims this far below tol by its own estimate, so that the certificate seldom disagrees,
constexpr double kMargin = 0.5;
// and tightens this often, tenfold each time, when it does.
constexpr int kTightenings = 3;
// A cold start on more samples than this begins on a subset: at 10^6 x 14 that takes the solve from
// 1.37 to 0.47 s.
constexpr size_t kPrimeAbove = 50'000, kPrimeRows = 10'000;
constexpr double kPrimeTol = 1e-4;
constexpr int kPrimeNewton = 1000;

// One solve: the problem and centre in the rows' unit, and the method on them.
class Run {
  public:
    Run(const Problem& problem, const Task& task)
        : problem_(problem),
          task_(task),
          terms_(problem.terms()),
          centre_(problem.n_features()),
          linear_(terms_.width) {
        // (rho/2) ||w - c||^2 = (rho/2) ||w||^2 - linear.w + constant, in the rows' unit, [unit].
        const size_t P = problem.n_features();
        double square = 0.0;
        for (size_t p = 0; p < P; ++p) {
            centre_[p] = task.centre[p] * problem.samples->scale;
            linear_[p] = centre_[p] * problem.penalties.rho;
            square += linear_[p] * centre_[p];
        }
        constant_ = 0.5 * square;
        if (problem.fit_intercept) {
            linear_[P] = problem.intercept_rho * task.centre_intercept;
            constant_ += 0.5 * linear_[P] * task.centre_intercept;
        }
    }

    Answer cold() const {
        Answer answer(problem_);
        // The middle of what the multipliers may be. No sample starts at a vertex, so most of
        // them have curvature in the first stage.
        for (size_t n = 0; n < terms_.n_padded; ++n) answer.point.kept[n] = 0.5 * terms_.mass[n];
        answer.point.sigma = 0.5 * terms_.epsilon;
        // Subsets are made of dense rows only.
        const bool is_large = terms_.rows->count > kPrimeAbove && !terms_.rows->is_sparse();
        if (is_large) prime(answer);
        descend(answer, is_large ? kPrimedPenalty : kColdPenalty);
        return answer;
    }

    Answer warm(const Start& start) const {
        Answer answer(problem_);
        Point& point = answer.point;
        // Primal and dual: the multipliers say on which side of the margin each sample is.
        std::copy(start.w.begin(), start.w.end(), point.w.data());
        point.w[terms_.width] = start.lam;
        std::copy(start.kept.begin(), start.kept.end(), point.kept.data());
        std::copy(start.flipped.begin(), start.flipped.end(), point.flipped.data());
        std::copy(start.pull.begin(), start.pull.end(), point.pull.data());
        point.sigma = start.sigma;
        descend(answer, kWarmPenalty);
        return answer;
    }

  private:
    const Problem& problem_;
    const Task& task_;
    Terms terms_;
    Buffer<> centre_, linear_;
    double constant_ = 0.0;

    Quadratic quadratic() const { return {linear_.data(), constant_}; }

    // Sets w, lam and the norm's multipliers to those of a loose solve on a subset of the samples.
    // The samples' own multipliers are not taken over: they belong to other masses.
    void prime(Answer& answer) const {
        const size_t count = terms_.rows->count;
        const Samples subset(*problem_.samples, (count + kPrimeRows - 1) / kPrimeRows);
        const Terms terms = problem_.terms_of(subset);
        Point& whole = answer.point;
        Point point(terms.n_padded, terms.width);
        for (size_t n = 0; n < terms.n_padded; ++n) point.kept[n] = 0.5 * terms.mass[n];
        point.sigma = whole.sigma;
        const Goal goal{kPrimeTol, kPrimeNewton};
        answer.n_iter += multiplier_method(terms, quadratic(), point, kColdPenalty, goal).n_newton;
        whole.w = std::move(point.w);
        whole.pull = std::move(point.pull);
        whole.sigma = point.sigma;
    }

    // Runs the method until the certificate agrees, or until further steps are of no use. The
    // certificate, which shares no code with the method, has the last word.
    void descend(Answer& answer, double penalty) const {
        double tol = kMargin * task_.tol;
        for (int k = 0; k <= kTightenings; ++k) {
            const Goal goal{tol, task_.max_newton - answer.n_iter};
            const Progress progress =
                multiplier_method(terms_, quadratic(), answer.point, penalty, goal);
            penalty = progress.penalty;
            answer.n_iter += progress.n_newton;
            judge(answer);
            if (answer.solved || answer.n_iter >= task_.max_newton) break;
            tol *= 0.1;
        }
    }

    void judge(Answer& answer) const {
        const Point& point = answer.point;
        answer.grade = grading::grade(
            grounds_of(problem_), {centre_.data(), task_.centre_intercept},
            {point.w.data(), point.kept.data(), point.flipped.data()}, answer.tension);
        // A gap far below 0 is as wrong as one far above, and inf <= inf proves nothing.
        const double goal = task_.tol * larger(std::fabs(answer.grade.objective), 1.0);
        answer.solved = std::fabs(answer.grade.gap()) <= goal && goal < kInfinite;
    }

    static constexpr double kInfinite = std::numeric_limits<double>::infinity();
};

}  // namespace

Answer::Answer(const Problem& problem)
    : point(padded(problem.samples->rows.count), problem.samples->rows.width),
      tension(problem.samples->rows.width),
      grade{} {}

grading::Grounds grounds_of(const Problem& problem) {
    const Samples& samples = *problem.samples;
    return {&samples.rows,        samples.labels.data(), samples.mass.data(),
            problem.n_features(), problem.ball.epsilon,  problem.ball.kappa,
            problem.ball.norm,    problem.penalties.rho, problem.penalties.tau,
            problem.intercept_rho};
}

Answer solve(const Problem& problem, const Task& task, const Start* start) {
    const Run run(problem, task);
    if (start == nullptr) return run.cold();
    Answer warm = run.warm(*start);
    // A warm start may be a bad one (after a change of rho, say): a cold one is tried, and the
    // better certificate wins.
    if (warm.solved) return warm;
    Answer cold = run.cold();
    return std::fabs(cold.grade.gap()) < std::fabs(warm.grade.gap()) ? std::move(cold)
                                                                     : std::move(warm);
}

Answer solve_from(const Problem& problem, const Task& task, const Start& start) {
    return Run(problem, task).warm(start);
}

}  // namespace fdrsvm::client
