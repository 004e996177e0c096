// A tool that stops something asks a person first, if the client can show questions. In 2026-07-28
// the question is the answer of the call, and the client calls again with the person's answer. In
// older revisions the server sends a request of its own while the call waits. A client without
// questions decides by itself: the tools carry hints for that.
#include "mcp/person_questions.h"

#include <utility>

#include "facts/digest.h"
#include "mcp/tool_calls.h"
#include "mcp/tool_table.h"
#include "text/json_writer.h"

namespace watchdog::monitor::mcp {
namespace {

constexpr std::size_t quoted_bytes_max = 300;

/// Returns a text of the model for a person: one line, not too long.
std::string quoted_line(std::string text) {
  for (auto& letter : text)
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = ' ';
  if (text.size() > quoted_bytes_max) text = text.substr(0, quoted_bytes_max) + "…";
  return "\"" + text + "\"";
}

std::string question_about(const std::string& tool, const json& arguments) {
  std::string question =
      "Stop the agent's session " + quoted_line(text_in(arguments, "session")) + "?";
  if (tool == "abort_call") {
    const auto call = text_in(arguments, "call");
    question = (call.empty() ? "Stop" : "Stop the call " + quoted_line(call) + " of") +
               " the agent's turn " + quoted_line(text_in(arguments, "turn")) + "?";
  }
  const auto reason = text_in(arguments, "reason");
  return question + (reason.empty() ? "" : " The reason given is: " + quoted_line(reason));
}

json form_about(const std::string& tool, const json& arguments) {
  return {{"message", question_about(tool, arguments)},
          {"requestedSchema", {{"type", "object"}, {"properties", json::object()}}}};
}

void decide(const ExchangePtr& exchange, const json& result, const std::function<void()>& act) {
  const auto action = text_in(result, "action");
  if (action == "accept") return act();
  exchange->finish(tool_error(action.empty()
                                  ? "The client could not ask its person. Nothing was stopped"
                                  : "The person did not agree. Nothing was stopped"));
}

}  // namespace

void with_access(Loop& loop, const ExchangePtr& exchange, std::function<void(const json&)> next) {
  const auto once = std::make_shared<std::function<void(const json&)>>(std::move(next));
  const auto go = [exchange, once](const json& access) {
    const auto step = std::exchange(*once, nullptr);
    if (step && !exchange->is_over()) step(access);
  };
  exchange->source->ask({.target = "/api/access"}, [&loop, go](Answer answer) {
    loop.post([go, answer = std::move(answer)] {
      const auto access = json::parse(answer.body, nullptr, false);
      go(answer.status == 200 && access.is_object() ? access : json());
    });
  });
  loop.after(access_max, [go] { go(json()); });
}

bool has_forms(const json& capabilities) {
  const auto& elicitation = member(capabilities, "elicitation");
  return elicitation.is_object() && (elicitation.contains("form") || !elicitation.contains("url"));
}

void PersonQuestions::confirm(const ExchangePtr& exchange, const std::string& tool,
                              const json& arguments) {
  auto act = [&loop = loop_, exchange, tool, arguments] {
    call_tool(loop, exchange, tool, arguments);
  };
  if (!exchange->can_ask) return act();
  exchange->is_asking = !exchange->is_modern();
  with_access(loop_, exchange,
              [weak = weak_from_this(), exchange, tool, arguments,
               act = std::move(act)](const json& access) {
                const auto self = weak.lock();
                if (!self) return;
                // A person is not asked for what the API refuses anyway.
                if (!permits(access, "act")) return act();
                self->ask(exchange, tool, arguments, act);
              });
}

void PersonQuestions::ask(const ExchangePtr& exchange, const std::string& tool,
                          const json& arguments, std::function<void()> act) {
  if (exchange->is_modern()) {
    // An answer counts for the question that it was given to.
    const auto state = hexadecimal(digest_of(line_of({tool, arguments})));
    const auto& answers = member(exchange->params, "inputResponses");
    if (answers.is_object() && text_in(exchange->params, "requestState") == state)
      return decide(exchange, member(answers, "confirm"), act);
    auto form = form_about(tool, arguments);
    form["mode"] = "form";
    return exchange->finish(
        {{"resultType", "input_required"},
         {"inputRequests",
          {{"confirm", {{"method", "elicitation/create"}, {"params", std::move(form)}}}}},
         {"requestState", state}});
  }
  const json id = "confirm-" + std::to_string(++asked_);
  open_[id.dump()] = [exchange, act = std::move(act)](const json& result) {
    if (!exchange->is_over()) decide(exchange, result, act);
  };
  // The question goes with the call.
  exchange->work =
      std::shared_ptr<void>(this, [weak = weak_from_this(), key = id.dump()](void* /*asker*/) {
        if (const auto self = weak.lock()) self->open_.erase(key);
      });
  exchange->ask(id, "elicitation/create", form_about(tool, arguments));
}

void PersonQuestions::accept(const json& id, const json& result) {
  const auto found = open_.find(id.dump());
  if (found == open_.end()) return;
  const auto next = std::move(found->second);
  open_.erase(found);
  next(result);
}

}  // namespace watchdog::monitor::mcp
