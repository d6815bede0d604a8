// Products of a dense matrix with vectors; the shapes of their sums do not depend on the processor.
#pragma once

#include "lanes.hpp"

namespace fdrsvm {

// Sets out = rows @ x. Every row is one sum of eight lanes, as in `dot`; four rows at a time, so
// that one does not wait for another's additions.
void times(ConstMatrix rows, ConstVector x, Vector out);

// Sets out = rows' @ x. Each column is four sums, over the rows n with n % 4 = 0, 1, 2, 3, that are
// started again every `kRowBlock` rows and added as (0 + 2) + (1 + 3). Numbers must be finite: long
// rows with x[n] = 0 may be left out.
void transposed_times(ConstMatrix rows, ConstVector x, Vector out);

inline constexpr size_t kRowBlock = 1024;

}  // namespace fdrsvm
