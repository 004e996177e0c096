/// \file
/// Reads the values of an answer: events, lines, or the whole document.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "llm/answer_builder.h"

namespace watchdog {

/// Reads one object of any API that `AnswerStream` knows. Members that are not known are skipped.
void read_answer_value(const nlohmann::json& value, AnswerBuilder& answer);

}  // namespace watchdog
