/// \file
/// Finds the session of a request.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "llm/model_request.h"
#include "proxy/sessions/observation.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// By what a request's session was recognised, the surest first.
enum class AttributedBy : std::uint8_t {
  header,   ///< `X-Watchdog-Session`
  path,     ///< the path's `/s/SESSION`
  process,  ///< the environment of its client's process
  native,   ///< a header of the client's own
  trace,    ///< telemetry of the trace that its `traceparent` names
  body,     ///< a field of the request
  chain,    ///< the answer that it goes on from
  opening,  ///< the conversation's beginning, and its source
};

/// A plain value.
struct Attribution {
  std::string session;  ///< A valid id.
  std::string parent;   ///< Likewise; empty: none is named.
  std::string agent;    ///< The kind of program: `claude-code`, `openai-python`, …
  std::string client;   ///< Its name and version, as it says.
  AttributedBy by = AttributedBy::opening;
  bool final = false;     ///< It is the session's last request.
  bool helper = false;    ///< Its client says that this is for a title, a summary or a subagent.
  bool compacts = false;  ///< Its client says that the answer replaces its conversation.
};

/// Returns the session that got the answer of that id; empty: unknown.
using AnswerOwner = std::function<std::string(std::string_view answer)>;

/// Returns the session of the trace of that id; empty: unknown. `guess`: the session by what is
/// less sure than a trace.
using TraceOwner = std::function<std::string(const std::string& trace, const std::string& guess)>;

/// Reads the request's body as far as it is known; nothing: the request asks for no answer.
[[nodiscard]] std::optional<ModelRequest> model_request_of(const ExchangeBegan& began);

/// `request` is null for what asks for no answer. Ids of clients stay as they are where they are
/// valid ids and hold no secret; else they become their digest, behind what of them may be read.
/// Equal requests give equal ids, now and in another process, but for what `owner` and `tracer`
/// know. Thread-safe if both are.
[[nodiscard]] Attribution attribution_of(const ExchangeBegan& began, const ModelRequest* request,
                                         const AnswerOwner& owner = {},
                                         const TraceOwner& tracer = {});

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::AttributedBy> {
  static constexpr std::string_view all[] = {"header", "path", "process", "native",
                                             "trace",  "body", "chain",   "opening"};
};
}  // namespace watchdog
