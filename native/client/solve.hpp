// One client's answer: the solver, graded and tightened until the certificate agrees.
#pragma once

#include "grading.hpp"
#include "problem.hpp"
#include "stages.hpp"

namespace fdrsvm::client {

// A centre (c, c_b) in the caller's unit, and how good an answer must be.
struct Task {
    ConstVector centre;
    double centre_intercept;
    double tol;
    int max_newton;
};

// An earlier answer; sizes as in the problem, without padding.
struct Start {
    ConstVector w;  // an intercept last
    double lam;
    ConstVector kept;
    ConstVector flipped;
    ConstVector pull;
    double sigma;
};

struct Answer {
    Answer(const Problem& problem);

    Point point;
    Buffer<> tension;
    grading::Grade grade;
    int n_iter = 0;
    bool solved = false;
};

grading::Grounds grounds_of(const Problem& problem);

// From `start`, or cold; should a start lead nowhere (a failed round's, or another problem's), cold
// after that, and the better of the two.
Answer solve(const Problem& problem, const Task& task, const Start* start);

// From `start` only.
Answer solve_from(const Problem& problem, const Task& task, const Start& start);

}  // namespace fdrsvm::client
