// A model server for tests, as a program: `model_backend [--KEY VALUE …]` with keys of
// backend_scenario.h and --port, --time-scale, --burn, --scenario JSON. It prints its URL.

#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "support/backend.h"

namespace {

using nlohmann::json;

int serve(const watchdog::test::ModelBackend::Options& options) {
  const watchdog::test::ModelBackend backend(options);
  std::cout << backend.url() << std::endl;
  while (!options.is_child) ::pause();
  // A child ends with the process that started it.
  std::array<char, 256> ignored{};
  while (::read(STDIN_FILENO, ignored.data(), ignored.size()) > 0) {
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    watchdog::test::ModelBackend::Options options;
    json scenario = json::object();
    if (const char* child = std::getenv(watchdog::test::child_scenario)) {
      const json given = json::parse(child);
      scenario = json::parse(given["scenario"].get<std::string>());
      scenario["kind"] = "llama_cpp";
      options.time_scale = given["time_scale"];
      options.burn = given["burn"];
      options.is_child = true;
      ::unsetenv(watchdog::test::child_scenario);
      ::prctl(PR_SET_NAME, "llama-server");
    }
    for (int at = 1; at + 1 < argc; ++at) {
      const std::string_view key = argv[at];
      const std::string_view value = argv[at + 1];
      if (key == "--port") {
        options.port = static_cast<std::uint16_t>(std::stoi(std::string(value)));
      } else if (options.is_child || !key.starts_with("--")) {
        continue;  // what Ollama sends its child is in the scenario as well
      } else if (key == "--time-scale") {
        options.time_scale = std::stod(std::string(value));
      } else if (key == "--burn") {
        options.burn = std::stod(std::string(value));
      } else if (key == "--scenario") {
        scenario.merge_patch(json::parse(value));
      } else {
        json given = json::parse(value, nullptr, /*allow_exceptions=*/false);
        scenario[std::string(key.substr(2))] = given.is_discarded() ? json(value) : given;
      }
      ++at;
    }
    options.scenario = scenario.dump();
    return serve(options);
  } catch (const std::exception& wrong) {
    std::cerr << wrong.what() << '\n';
    return 2;
  }
}
