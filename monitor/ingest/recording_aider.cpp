// aider's `.aider.chat.history.md`: Markdown. `# aider chat started at TIME` begins a session,
// `####` a prompt; lines with `>` are what the program says, all others are the model's answer. So
// only prompts, answers, edits and commands are known, and no time but that of the start. Each line
// is given as a text. Source: Aider-AI/aider aider/io.py (append_chat_history).
#include <algorithm>

#include "ingest/recording_steps.h"
#include "ingest/time_text.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr std::string_view aider_start = "# aider chat started at ";

/// Beginnings of what the program says: which tool ran, and whether it failed.
struct AiderRow {
  std::string_view begin;
  std::string_view tool;
  bool failed;
};
constexpr AiderRow aider_rows[] = {
    {"Applied edit to ", "edit", false},
    {"Running ", "shell", false},
    {"The LLM did not conform to the edit format", "edit", true},
    {"# The LLM did not conform to the edit format", "edit", true},
    {"SEARCH/REPLACE block failed to match", "edit", true},
};

class AiderReader final : public ValueReader {
 public:
  Result<void> read(const json& value, std::string_view /*text*/, StepList& steps) override {
    if (!value.is_string()) return Error{ErrorCode::malformed, "a line of Markdown is a text"};
    std::string_view line = value.get_ref<const std::string&>();
    while (line.ends_with(' ') || line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(aider_start)) {
      begin(line.substr(aider_start.size()), steps);
    } else if (!session_) {
      return Error{ErrorCode::malformed, "a session begins with `# aider chat started at`"};
    } else if (line.starts_with("#### ")) {
      end_answer(steps);
      prompt_ += (prompt_.empty() ? "" : "\n") + std::string(line.substr(5));
    } else if (line.starts_with("> ")) {
      end_prompt(steps);
      read_note(line.substr(2), steps);
    } else {
      end_prompt(steps);
      answer_ += (answer_.empty() ? "" : "\n") + std::string(line);
      answer_ = content_text(answer_);
    }
    return {};
  }
  void finish(StepList& steps) override {
    if (session_) end_session(steps);
  }

 private:
  void begin(std::string_view time, StepList& steps) {
    if (session_) end_session(steps);
    // The second session of a file gets the file's name with its number.
    const auto id =
        ++sessions_ == 1 ? std::string() : steps.name() + "-" + std::to_string(sessions_);
    SessionSpec spec;
    spec.agent = "aider";
    session_ = steps.session(id, std::move(spec));
    at_ = time_in_text(time);
  }

  void end_session(StepList& steps) {
    end_prompt(steps);
    end_answer(steps);
    if (std::exchange(has_answer_, false)) steps.rest(session_, {}, {}, at_);
  }

  void end_prompt(StepList& steps) {
    if (prompt_.empty()) return;
    if (std::exchange(has_answer_, false)) steps.rest(session_, {}, {}, at_);
    steps.prompt(session_, std::exchange(prompt_, {}), at_);
    at_.reset();  // only the start of a session has a time
  }

  void end_answer(StepList& steps) {
    if (answer_.empty()) return;
    has_answer_ = true;
    steps.message(session_, "assistant", std::exchange(answer_, {}), at_);
  }

  void read_note(std::string_view note, StepList& steps) {
    end_answer(steps);
    if (note.starts_with("Tokens: ")) return count(note.substr(8), steps);
    const auto* row = std::ranges::find_if(
        aider_rows, [&](const AiderRow& known) { return note.starts_with(known.begin); });
    if (row == std::end(aider_rows)) return;
    const auto id = "call-" + std::to_string(++calls_);
    const std::string subject(row->failed ? note : note.substr(row->begin.size()));
    steps.call(session_, std::string(row->tool), id, subject, at_);
    steps.result(session_, std::string(row->tool), id, row->failed, std::string(note), at_);
  }

  /// `4.5k sent, 1.2k cache hit, 100 received. Cost: …`
  void count(std::string_view text, StepList& steps) {
    ++used_.steps;
    for (auto at = text.find_first_of("0123456789"); at != text.npos && at < text.find("Cost:");) {
      const auto end = std::min(text.find_first_not_of("0123456789.,k", at), text.size());
      std::string figure(text.substr(at, end - at));
      std::erase(figure, ',');
      const double scale = figure.ends_with('k') ? 1'000 : 1;
      const auto word = text.substr(std::min(end + 1, text.size()));
      if (word.starts_with("sent") || word.starts_with("received"))
        used_.tokens =
            std::min(used_.tokens + static_cast<std::int64_t>(std::min(
                                        std::strtod(figure.c_str(), nullptr) * scale, 1e9)),
                     budget_max);
      at = text.find_first_of("0123456789", end);
    }
    steps.use(session_, used_, at_);
  }

  std::shared_ptr<const RecordedSession> session_;
  std::optional<WallTime> at_;
  std::string prompt_;
  std::string answer_;
  BudgetFigures used_{};
  std::int64_t calls_ = 0;
  int sessions_ = 0;
  bool has_answer_ = false;
};

}  // namespace

bool is_aider(const json& value) {
  return value.is_string() && is_aider_text(value.get_ref<const std::string&>());
}

bool is_aider_text(std::string_view begin) {
  begin.remove_prefix(std::min(begin.find_first_not_of(" \t\r\n"), begin.size()));
  return begin.starts_with(aider_start);
}

std::unique_ptr<ValueReader> aider_reader() {
  return std::make_unique<AiderReader>();
}

}  // namespace watchdog::monitor
