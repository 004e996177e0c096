/// \file
/// Questions to the person of a client, before a tool stops something.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "mcp/exchange.h"
#include "mcp/loop.h"

namespace watchdog::monitor::mcp {

/// A monitor that does not say by then what the client may do is not waited for.
inline constexpr Millis access_max{3'000};

/// Continues with the answer to /api/access; null: the monitor does not say.
void with_access(Loop& loop, const ExchangePtr& exchange,
                 std::function<void(const json& access)> next);

/// True for a client that can ask its person by a form. One that names no modes has forms. Pure.
[[nodiscard]] bool has_forms(const json& capabilities);

/// The open questions of one client. Of a loop's steps alone.
class PersonQuestions : public std::enable_shared_from_this<PersonQuestions> {
 public:
  explicit PersonQuestions(Loop& loop) : loop_(loop) {}

  /// Calls a tool that stops something, after a person agreed, if the client can ask one.
  void confirm(const ExchangePtr& exchange, const std::string& tool, const json& arguments);
  /// Continues the call that waits for this response of the client, if there is one.
  void accept(const json& id, const json& result);
  /// Forgets all.
  void clear() { open_.clear(); }

 private:
  void ask(const ExchangePtr& exchange, const std::string& tool, const json& arguments,
           std::function<void()> act);

  Loop& loop_;
  /// By the ids of the requests. They get the result; null: an error.
  std::map<std::string, std::function<void(const json& result)>> open_;
  std::int64_t asked_ = 0;
};

}  // namespace watchdog::monitor::mcp
