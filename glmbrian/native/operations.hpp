// What Brian's generated code calls in each time step: see presentations.hpp.
#pragma once

namespace glmbrian {

int begin_step();
int propagate();
int end_step();

}  // namespace glmbrian
