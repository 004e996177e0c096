/// \file
/// Spans of programs that observe models, as steps in the order of time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ingest/recording_steps.h"

namespace watchdog::monitor {

/// One span of a trace. A plain value.
struct RecordedSpan {
  /// The meaning of a span.
  enum class Kind : std::uint8_t {
    call,    ///< a tool call
    answer,  ///< a request to a model
    turn,    ///< the outermost span of a trace
    trouble  ///< an error that a person may want to know of
  };

  Kind kind = Kind::call;
  std::string session{};
  std::string agent{};  ///< The name of the trace.
  std::string name{};
  std::string id{};
  std::string input{};
  std::string output{};
  bool failed = false;
  std::optional<WallTime> begin{};
  std::optional<WallTime> end{};
  std::int64_t tokens = 0;
  double cost = 0;
  int line = 0;
};

/// Adds the steps of all spans, in the order of time. A call is reported when it begins and when it
/// ends, an answer when it ends.
void add_spans(const std::vector<RecordedSpan>& spans, StepList& steps);

/// Returns the text of the newest message with this role, or of the value itself. It may be empty.
/// It reads messages of LangChain and of OpenAI's API.
[[nodiscard]] std::string newest_text(const nlohmann::json& value, bool of_person);

/// Returns the number in a member, from 0 to `most`; 0 if it is something else.
[[nodiscard]] double amount_in(const nlohmann::json& object, const char* name, double most);

}  // namespace watchdog::monitor
