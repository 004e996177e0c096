// A chat of Gemini CLI. A line is the facts of the session, a message, changed facts (`$set`) or a
// rewind. A message is written again when its calls are over, and a shortened history is written
// whole, so each line may repeat messages. Older versions write one object with all messages, again
// and again. So each part of a message is reported once, and its event id depends on the message
// alone. An answer whose calls are still running looks like the last one of its turn: only quiet
// tells them apart.
// Sources: google-gemini/gemini-cli packages/core/src/services/chatRecordingService.ts and
// chatRecordingTypes.ts.
#include <algorithm>

#include "facts/digest.h"
#include "facts/ids.h"
#include "ingest/gemini_message.h"
#include "ingest/time_text.h"
#include "ingest/transcript_state.h"
#include "privacy/content.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// The parts of a message that are reported.
enum class Aspect : std::uint8_t { whole = 1, prompt, answer, use, state, call, result };

/// A message of a person begins with this if Gemini CLI wrote it.
constexpr std::string_view context_mark = "<session_context>";
/// The first message of a shortened conversation has this.
constexpr std::string_view snapshot_mark = "<state_snapshot>";

/// The first folder that the program's own message names; empty: none.
std::string folder_in(std::string_view context) {
  constexpr std::string_view before = "Workspace Directories:**\n  - ";
  const auto found = context.find(before);
  if (found == context.npos) return {};
  const auto folder = context.substr(found + before.size());
  const auto end = std::min(folder.find('\n'), folder.size());
  return end <= label_bytes_max ? std::string(folder.substr(0, end)) : std::string();
}

/// The text that a person wrote: without the files that the program added, if it says so.
std::string prompt_in(const json& message) {
  const auto& shown = member(message, "displayContent");
  const auto& content = shown.is_null() ? member(message, "content") : shown;
  return content.is_object() ? text_in(content, "text") : content_text(content);
}

class GeminiChat {
 public:
  GeminiChat(TranscriptState& state, WallTime now) : state_(state), now_(now) {}

  void read(const json& line) {
    const auto& changed = member(line, "$set");
    for (const auto* facts : {&line, &changed}) read_facts(*facts);
    if (!text_in(line, "type").empty()) read_message(line);
    for (const auto* facts : {&line, &changed}) {
      const auto& messages = member(*facts, "messages");
      if (!messages.is_array()) continue;
      for (const auto& message : messages) read_message(message);
    }
  }
  std::vector<Batch> batches() { return std::move(batches_); }

 private:
  void read_facts(const json& facts) {
    auto id = as_session_id(text_in(facts, "sessionId"));
    if (!id.empty()) {
      if (text_in(facts, "kind") == "subagent" && state_.folder != "chats")
        state_.parent = as_session_id(state_.folder);
      if (!state_.parent.empty() && id != state_.own) id = child_of(state_.parent, id);
      state_.own = std::move(id);
    }
    const auto& folders = member(facts, "directories");
    if (!folders.is_array() || folders.empty() || !folders.front().is_string()) return;
    if (auto folder = folders.front().get<std::string>(); folder.size() <= label_bytes_max)
      cwd_ = std::move(folder);
  }

  static std::string child_of(const std::string& parent, const std::string& id) {
    return as_session_id(id.starts_with(parent + ":") ? id : parent + ":" + id);
  }

  /// Calls `with` with a collector whose event ids are of this aspect of the message.
  template <class With>
  void say(Aspect aspect, WallTime at, With with) {
    TranscriptCollector collector(state_, combined(mark_, static_cast<std::uint64_t>(aspect)),
                                  std::min(at, now_), now_, is_timed_);
    auto& conversation = collector.conversation(state_.own, state_.parent);
    if (conversation.cwd.empty()) conversation.cwd = cwd_;
    with(collector, conversation);
    for (auto& batch : collector.batches()) batches_.push_back(std::move(batch));
  }
  bool is_first(Aspect aspect, std::uint64_t more = 0) {
    auto& found = conversation();
    return monitor::is_first(found,
                             combined(combined(mark_, static_cast<std::uint64_t>(aspect)), more));
  }
  TranscriptSession& conversation() {
    const auto found =
        std::ranges::find(state_.conversations, state_.own, &TranscriptSession::session);
    if (found != state_.conversations.end()) return *found;
    TranscriptCollector collector(state_, mark_, at_, now_, is_timed_);
    return collector.conversation(state_.own, state_.parent);
  }

  void read_message(const json& message) {
    const auto id = text_in(message, "id");
    if (state_.own.empty() || id.empty() || id.size() > label_bytes_max) return;
    const auto said = time_in_text(text_in(message, "timestamp"));
    at_ = said ? std::min(*said, now_) : now_;
    is_timed_ = said.has_value();
    mark_ = digest_of(id);
    auto& known = conversation();
    const std::int64_t ms = at_.time_since_epoch().count();
    is_newest_ = id == known.prompt || ms >= known.message_ms;
    // It was reported before the file was closed.
    if (!is_newest_ && state_.is_resumed && !is_known(known, mark_)) return;
    (void)monitor::is_first(known, mark_);
    if (!is_first(Aspect::whole,
                  digest_of(message.dump(-1, ' ', false, json::error_handler_t::replace))))
      return;
    if (is_newest_) {
      known.prompt = id;
      known.message_ms = std::max(known.message_ms, ms);
    }
    const auto type = text_in(message, "type");
    if (type == "user") return read_prompt(message);
    if (type == "gemini" || type == "qwen" || type == "assistant") return read_answer(message);
    read_notice(type, content_text(member(message, "content")));
  }

  void read_prompt(const json& message) {
    auto text = prompt_in(message);
    if (text.starts_with(context_mark)) {
      if (cwd_.empty()) cwd_ = folder_in(text);
      return say(Aspect::state, at_, [](auto&, auto&) {});
    }
    if (text.find(snapshot_mark) != text.npos) {
      if (is_first(Aspect::state))
        say(Aspect::state, at_,
            [](auto& collector, auto& talk) { collector.compact(talk, false); });
      return;
    }
    if (text.empty() || text.starts_with('/') || !is_first(Aspect::prompt)) return;
    say(Aspect::prompt, at_,
        [&](auto& collector, auto& talk) { collector.prompt(talk, std::move(text)); });
  }

  void read_answer(const json& message) {
    auto text = content_text(member(message, "content"));
    const auto& calls = member(message, "toolCalls");
    const bool has_calls = calls.is_array() && !calls.empty();
    const bool has_text = !text.empty();
    const bool is_new_text = has_text && is_first(Aspect::answer);
    const auto tokens = gemini_tokens(message);
    auto model = text_in(message, "model");
    if (model.size() > label_bytes_max) model.clear();
    if (is_newest_) {
      say(Aspect::state, at_, [&](auto& collector, auto& talk) {
        if (!model.empty()) talk.model = model;
        collector.answered(talk);
      });
      say(Aspect::use, at_, [&](auto& collector, auto& talk) {
        if (tokens > 0) collector.use(talk, text_in(message, "id"), tokens);
      });
    }
    if (is_new_text)
      say(Aspect::answer, at_, [&](auto& collector, auto& talk) {
        collector.say(talk, ReportKind::message, "assistant", std::move(text));
      });
    if (has_calls)
      for (const auto& call : calls) read_call(call);
    if (is_newest_) conversation().may_rest = has_text && !has_calls;
  }

  void read_call(const json& call) {
    const auto id = text_in(call, "id");
    const auto key = digest_of(id);
    const auto names = [&](TranscriptCollector& collector) {
      const auto own = "transcript:" + std::to_string(mark_);
      collector.name_calls(own + ":call:", own + ":result:");
      return own + ":result:";
    };
    if (is_first(Aspect::call, key) && !is_open(conversation(), id))
      say(Aspect::call, at_, [&](auto& collector, auto& talk) {
        (void)names(collector);
        collector.call(talk, id, text_in(call, "name"), content_text(member(call, "args")));
      });
    if (!is_gemini_call_over(call) || !is_first(Aspect::result, key)) return;
    const auto end = time_in_text(text_in(call, "timestamp"));
    say(Aspect::result, end ? std::max(*end, at_) : at_, [&](auto& collector, auto& talk) {
      const auto failure = names(collector);
      collector.result(talk, id, text_in(call, "status") != "success", gemini_result(call),
                       failure);
    });
  }

  void read_notice(const std::string& type, const std::string& text) {
    const bool is_stop = is_gemini_interruption(type, text);
    if ((type != "error" && !is_stop) || !is_newest_ || !is_first(Aspect::state)) return;
    say(Aspect::state, at_, [&](auto& collector, auto& talk) {
      if (is_stop) collector.rest(talk, idle_reports::interrupted);
      if (!is_stop) collector.fail(talk, {}, text, 0);
    });
  }

  TranscriptState& state_;
  WallTime now_;
  std::string cwd_;
  std::vector<Batch> batches_;
  // Of the message that is read:
  WallTime at_{};
  bool is_timed_ = true;
  bool is_newest_ = true;  ///< No message after it was read.
  std::uint64_t mark_ = 0;
};

}  // namespace

std::vector<Batch> read_gemini_cli(TranscriptState& state, const json& line, WallTime now) {
  GeminiChat chat(state, now);
  chat.read(line);
  return chat.batches();
}

}  // namespace watchdog::monitor
