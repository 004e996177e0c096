// A question is shown before something is allowed: a person names the question that they saw, or is
// asked on the terminal. The answer then goes to that question alone, by its id, because the agent
// may ask the next one meanwhile. To deny is safe, whatever it asks.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/session_choice.h"
#include "core/held_questions.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

struct AnswerOptions {
  Endpoint::Options endpoint;
  SessionChoice choice;
  std::string answer;    ///< Empty: the question is only shown.
  std::string question;  ///< The id of the one that is answered.
  std::string reason;
  bool json = false;
};

Error asks_nothing(const std::string& session) {
  return {ErrorCode::not_found,
          "session " + session +
              " asks nothing that can be answered here. A hook holds a question open only if "
              "`hooks install --hold SECONDS` says so, and if all of it can be shown",
          "session"};
}

bool is_choice(const json& question) {
  return shown(question, "kind") == name_of(QuestionKind::choice);
}

std::vector<std::string> choices_of(const json& question) {
  std::vector<std::string> choices;
  for (const auto& choice : question.value("choices", json::array()))
    if (choice.is_string()) choices.push_back(choice.get<std::string>());
  return choices;
}

std::string question_text(const json& document, const json& question) {
  std::string text = shown(document, "title") +
                     (is_choice(question) ? " asks:" : " asks for permission: ") +
                     (is_choice(question) ? "" : shown(question, "tool")) + "\n";
  std::istringstream lines(question.value("text", std::string()));
  for (std::string line; std::getline(lines, line);) text += "  " + terminal_line(line) + "\n";
  for (const auto& choice : choices_of(question)) text += "  - " + terminal_line(choice) + "\n";
  return text;
}

/// Returns what the API takes, or a mistake of usage.
Result<json> decision_of(const json& question, const AnswerOptions& options) {
  json body = {{"questionId", question.value("questionId", "")}};
  const auto& answer = options.answer;
  const auto choices = choices_of(question);
  const bool is_listed = std::ranges::find(choices, answer) != choices.end();
  if (answer == "deny" && !is_listed) {
    body["decision"] = "deny";
    body["text"] = options.reason;
    return body;
  }
  if (!options.reason.empty())
    return Error{ErrorCode::invalid, "--reason goes with deny", "--reason"};
  body["decision"] = "allow";
  if (is_choice(question)) body["text"] = answer;
  if (!is_choice(question) && answer != "allow")
    return Error{ErrorCode::invalid, "the agent asks for permission: say allow or deny", "answer"};
  return body;
}

/// Likewise about a question whose kind is not known any more.
Result<json> late_decision_of(const AnswerOptions& options) {
  const bool denies = options.answer == "deny";
  const auto said = denies                      ? options.reason
                    : options.answer == "allow" ? std::string()
                                                : options.answer;
  return json{
      {"questionId", options.question}, {"decision", denies ? "deny" : "allow"}, {"text", said}};
}

/// A person allows what they saw: the question that they name, or one that is shown now. Errors:
/// `conflict`: another one is open; `invalid`: nobody can be asked, or the person said no.
Result<void> confirm(const json& document, const json& question, const AnswerOptions& options) {
  const auto id = question.value("questionId", std::string());
  if (!options.question.empty()) {
    if (options.question == id) return {};
    return Error{ErrorCode::conflict,
                 "the session asks something else by now:\n" + question_text(document, question),
                 "--question"};
  }
  if (isatty(STDIN_FILENO) != 1)
    return Error{ErrorCode::invalid,
                 "name the question that you saw: --question " + id + "\n" +
                     question_text(document, question),
                 "--question"};
  print_error(question_text(document, question) + "Answer so? [y/N] ");
  std::string said;
  std::getline(std::cin, said);
  if (said == "y" || said == "Y" || said == "yes") return {};
  return Error{ErrorCode::invalid, "nothing was answered", "answer"};
}

int answer(const AnswerOptions& options) {
  auto endpoint_options = options.endpoint;
  endpoint_options.writes = !options.answer.empty();
  auto endpoint = Endpoint::open(endpoint_options);
  if (!endpoint) return complain(endpoint.error());
  const auto session = session_of(*endpoint, options.choice);
  if (!session) return complain(session.error());
  const auto body = endpoint->ask(Method::get, "/api/autonomous/progress/" + url_encoded(*session));
  if (!body) return complain(body.error());
  const auto document = json::parse(*body, nullptr, false);
  const auto question = document.is_object() ? document.value("question", json()) : json();
  if (!question.is_object() && (options.question.empty() || options.answer.empty()))
    return complain(asks_nothing(*session));
  if (options.answer.empty()) {
    if (options.json) {
      print_json(question.dump(-1, ' ', false, json::error_handler_t::replace));
    } else {
      print(question_text(document, question));
      print_line("Answer: watchdog-monitor answer " + *session +
                 (is_choice(question) ? " TEXT" : " allow") + " --question " +
                 shown(question, "questionId") + (is_choice(question) ? "" : "\n    or: deny"));
    }
    return exit_done;
  }
  // Of a question that is not open any more the monitor says who answered it, and how.
  const auto decided =
      question.is_object() ? decision_of(question, options) : late_decision_of(options);
  if (!decided) return complain(decided.error());
  if ((*decided)["decision"] == "allow" && question.is_object())
    if (auto agreed = confirm(document, question, options); !agreed)
      return complain(agreed.error());
  const auto done =
      endpoint->act(Method::post, "/api/autonomous/sessions/" + url_encoded(*session) + "/answer",
                    decided->dump(-1, ' ', false, json::error_handler_t::replace));
  if (!done) return complain(done.error());
  options.json ? print_json(*done) : print_line(shown(json::parse(*done), "message"));
  return exit_done;
}

}  // namespace

void add_answer(CommandLine& line) {
  const auto options = std::make_shared<AnswerOptions>();
  auto* command = line.app.add_subcommand(
      "answer", "Answer what an agent asks: show the question, allow, deny, or say something");
  // With --last the only word is the answer.
  command->add_option("session", options->choice.named,
                      "Session: its id, the beginning of its id, or the folder it works in");
  command->add_flag("--last", options->choice.last, "The session that began last");
  command->add_option("answer", options->answer,
                      "allow, deny, or the answer to a question with choices. Without it the "
                      "question is shown");
  command
      ->add_option("--question", options->question,
                   "Id of the question that you saw. Without it the question is shown, and asked "
                   "on the terminal before anything is allowed")
      ->type_name("ID");
  command->add_option("--reason", options->reason, "Why it is denied, which the agent gets");
  command->add_flag("--json", options->json, "Print the question, or what came of it, as JSON");
  add_endpoint(*command, options->endpoint);
  command->footer(
      std::string("Only a question that its agent's hook holds open can be answered here: see\n"
                  "`hooks install --hold`. The agent's own terminal takes an answer as well. The\n"
                  "first answer counts.\n") +
      exit_codes);
  command->callback([&line, options] {
    if (options->choice.last && !options->answer.empty())
      throw CLI::ExcludesError("session", "--last");
    if (options->choice.last) options->answer = std::exchange(options->choice.named, {});
    need_session(options->choice);
    if (options->answer.empty() && !options->reason.empty())
      throw CLI::RequiresError("--reason", "deny");
    line.code = with_settings(options->endpoint.sources, [&] { return answer(*options); });
  });
}

}  // namespace watchdog::monitor
