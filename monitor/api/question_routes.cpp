// A person's answer to a question that a hook holds open. The question lives with its connection,
// so the answer is given from memory, and what it means for the session is stored beside it. The
// route is an act: the audit log says who answered, from where and when, and the session's events
// say what.
#include <utility>

#include "api/routes.h"
#include "codec/json.h"
#include "privacy/redaction.h"
#include "text/nearest.h"

namespace watchdog::monitor {
namespace {

/// A person's decision. Without one a text stands for `allow`.
enum class Decision : std::uint8_t { allow, deny };

}  // namespace
}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::Decision> {
  static constexpr std::string_view all[] = {"allow", "deny"};
};
}  // namespace watchdog

namespace watchdog::monitor {
namespace {

struct AnswerRequest {
  std::string question;  ///< Its id.
  PersonAnswer answer;
};

Result<AnswerRequest> answer_in(const Call& call) {
  const auto& body = call.request.body;
  auto decided = text_field_from_json(body, "decision");
  if (!decided) return decided.error();
  auto text = text_field_from_json(body, "text");
  if (!text) return text.error();
  auto question = text_field_from_json(body, "questionId");
  if (!question) return question.error();
  const auto asked = request_in(call);
  if (!asked) return asked.error();
  if (question->empty())
    return Error{ErrorCode::malformed, "questionId is missing: it names the question that you saw",
                 "questionId"};
  if (decided->empty() && text->empty())
    return Error{ErrorCode::malformed, "decision (allow or deny) or text is missing", "decision"};
  const auto decision = decided->empty() ? Decision::allow : named<Decision>(*decided);
  if (!decision)
    return Error{ErrorCode::invalid, unknown_word("decision", *decided, all_names<Decision>()),
                 "decision"};
  return AnswerRequest{
      .question = std::move(*question),
      .answer = {
          .allows = *decision == Decision::allow, .text = std::move(*text), .by = asked->by}};
}

}  // namespace

void answer_question(const CallPtr& call) {
  auto asked = answer_in(*call);
  if (!asked) return call->reply(error_response(asked.error()));
  const auto answer = asked->answer;
  const auto done =
      call->backend.questions().answer(call->id, asked->question, std::move(asked->answer));
  if (!done) return call->reply(error_response(done.error()));
  const auto words = words_of(answer, done->kind);
  JsonWriter out;
  out.open_object().field("ok", true).field("sessionId", call->id).field("questionId", done->id);
  out.field("answer", words);
  out.field("message", "sent to the agent's hook: " + words).close_object();
  call->reply(json_response(out));
}

}  // namespace watchdog::monitor
