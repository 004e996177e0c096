#include "core/held_questions.h"

#include <algorithm>
#include <utility>

#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

/// Each keeps a connection. A fifth of what the server takes.
constexpr std::size_t held_max = 200;
constexpr std::size_t given_max = 200;
constexpr std::size_t answer_bytes_max = 4'000;

std::string said_by(const PersonAnswer& answer, QuestionKind kind) {
  return words_of(answer, kind) + (answer.by.empty() ? "" : " by " + answer.by);
}

Result<void> check(const HeldQuestion& question, const PersonAnswer& answer) {
  if (answer.text.size() > answer_bytes_max)
    return Error{ErrorCode::invalid,
                 "the answer is longer than " + std::to_string(answer_bytes_max) + " bytes",
                 "answer"};
  if (question.kind == QuestionKind::choice && answer.allows && answer.text.empty()) {
    std::string list;
    for (const auto& choice : question.choices) list += (list.empty() ? "" : ", ") + choice;
    return Error{ErrorCode::invalid,
                 "the question wants an answer of its own" +
                     (list.empty() ? std::string() : ", for example one of: " + list),
                 "answer"};
  }
  if (question.kind == QuestionKind::permission && answer.allows && !answer.text.empty())
    return Error{ErrorCode::invalid, "the question takes allow or deny, not a text", "answer"};
  return {};
}

}  // namespace

std::string with_question(std::string object, const std::optional<HeldQuestion>& question) {
  if (!question || !object.ends_with('}')) return object;
  JsonWriter out;
  out.open_object().field("questionId", question->id).field("kind", name_of(question->kind));
  out.field("tool", question->tool).field("text", question->text).key("choices").open_array();
  for (const auto& choice : question->choices) out.value(choice);
  out.close_array().field("askedAt", question->asked.time_since_epoch().count());
  out.field("until", question->until.time_since_epoch().count()).close_object();
  object.pop_back();
  return object + ",\"question\":" + out.finish() + "}";
}

std::string HeldQuestions::hold(HeldQuestion question, Answered answered) {
  const std::lock_guard guard(mutex_);
  if (held_.size() >= held_max) return {};
  held_.push_back({std::move(question), std::move(answered)});
  return held_.back().question.id;
}

std::optional<HeldQuestion> HeldQuestions::of(std::string_view session) const {
  const std::lock_guard guard(mutex_);
  const auto found = std::ranges::find_if(
      held_, [&](const Held& held) { return held.question.session == session; });
  if (found == held_.end()) return {};
  return found->question;
}

std::optional<HeldQuestion> HeldQuestions::held(std::string_view session,
                                                std::string_view id) const {
  const std::lock_guard guard(mutex_);
  const auto found = std::ranges::find_if(held_, [&](const Held& held) {
    return held.question.session == session && held.question.id == id;
  });
  if (found == held_.end()) return {};
  return found->question;
}

Result<HeldQuestion> HeldQuestions::answer(std::string_view session, std::string_view id,
                                           PersonAnswer answer) {
  Answered answered;
  HeldQuestion question;
  {
    const std::lock_guard guard(mutex_);
    const auto is_meant = [&](const Held& held) {
      return held.question.session == session && held.question.id == id;
    };
    const auto found = std::ranges::find_if(held_, is_meant);
    if (found == held_.end()) {
      const auto given = std::ranges::find_if(
          given_.rbegin(), given_.rend(),
          [&](const Given& old) { return old.session == session && old.id == id; });
      if (given != given_.rend())
        return Error{ErrorCode::conflict, "it was answered before: " + given->words, "questionId"};
      return Error{ErrorCode::not_found,
                   "the session does not ask this question any more: it was answered where the "
                   "agent runs, or its hook is gone",
                   "sessionId"};
    }
    if (auto right = check(found->question, answer); !right) return right.error();
    question = found->question;
    answered = std::move(found->answered);
    held_.erase(found);
    if (given_.size() >= given_max) given_.erase(given_.begin());
    given_.push_back({question.session, question.id, said_by(answer, question.kind)});
  }
  answered(std::move(answer));
  return question;
}

void HeldQuestions::release(const std::string& id) {
  Answered answered;
  {
    const std::lock_guard guard(mutex_);
    const auto found =
        std::ranges::find_if(held_, [&](const Held& held) { return held.question.id == id; });
    if (found == held_.end()) return;
    answered = std::move(found->answered);
    held_.erase(found);
  }
  answered({});
}

}  // namespace watchdog::monitor
