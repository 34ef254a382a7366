// What Brian's generated code calls in each time step: see presentations.hpp.
#pragma once

namespace glmbrian {

int begin_step();
int draw_hidden_spikes();  // only if there are hidden neurons
int propagate();
int end_step();

}  // namespace glmbrian
