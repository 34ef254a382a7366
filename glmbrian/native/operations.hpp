// What Brian's generated code calls in each time step: see presentations.hpp.
#ifndef GLMBRIAN_OPERATIONS_HPP
#define GLMBRIAN_OPERATIONS_HPP

namespace glmbrian {

int begin_step();
int draw_hidden_spikes();  // only if there are hidden neurons
int propagate();
int end_step();

}  // namespace glmbrian

#endif  // GLMBRIAN_OPERATIONS_HPP
