// Predictions: features of a run, models, their file, and what they are worth on recorded runs. The
// examples in tests/data/predict hold numbers of recorded runs and no content of them.
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "predict/training.h"
#include "support/scenario.h"
#include "watchdog/repetition.h"

namespace watchdog {
namespace {

std::string examples_text() {
  std::ifstream file(std::string(PROJECT_ROOT) + "/tests/data/predict/examples.jsonl");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<Example> recorded_examples() {
  auto examples = examples_from_json_lines(examples_text());
  EXPECT_TRUE(examples.ok()) << examples.error().message;
  return examples ? *examples : std::vector<Example>{};
}

Event call_event(Seq seq, ReportKind kind, std::string content) {
  Event event{.seq = seq, .session = 1, .tick = Instant{Millis{1'000}}};
  event.report.kind = kind;
  event.report.name = kind == ReportKind::message ? "assistant" : "shell";
  event.report.content = std::move(content);
  mark(event.report);
  return event;
}

/// `count` calls of one command, or of ever new ones.
RunFeatures run_of(int count, bool same) {
  RunFeatures run;
  Seq seq = 0;
  for (int i = 0; i < count; ++i) {
    const auto word = same ? std::string("alpha") : "word" + std::to_string(i);
    run.fold(call_event(++seq, ReportKind::tool_call, "{\"command\": \"run " + word + "\"}"));
    run.fold(call_event(++seq, same ? ReportKind::error : ReportKind::tool_result,
                        "the result of " + word + " is a text that is long enough to inform"));
  }
  return run;
}

double value_of(const RunFeatures& run, Feature feature) {
  return run.features()[static_cast<std::size_t>(feature)];
}

TEST(RunFeatures, distinguish_a_circle_from_work) {
  const auto circle = run_of(12, true);
  const auto work = run_of(12, false);
  EXPECT_EQ(circle.calls(), 12);
  EXPECT_GT(value_of(circle, Feature::repetition), value_of(work, Feature::repetition));
  EXPECT_DOUBLE_EQ(value_of(circle, Feature::failures), 1);
  EXPECT_DOUBLE_EQ(value_of(work, Feature::failures), 0);
  EXPECT_LT(value_of(circle, Feature::recent_results), value_of(work, Feature::recent_results));
  EXPECT_TRUE(std::isnan(value_of(work, Feature::recent_messages))) << "there was no message";
}

TEST(RunFeatures, use_only_what_stores_keep_by_default) {
  const std::string kept(feature_characters, 'a');
  RunFeatures cut;
  RunFeatures whole;
  for (Seq seq = 1; seq <= 20; ++seq) {
    cut.fold(call_event(seq, ReportKind::message, kept));
    whole.fold(call_event(seq, ReportKind::message, kept + " " + std::to_string(seq)));
  }
  EXPECT_EQ(value_of(cut, Feature::recent_messages), value_of(whole, Feature::recent_messages));
}

TEST(Stages, begin_at_their_number_of_calls) {
  EXPECT_FALSE(stage_of(3));
  EXPECT_EQ(stage_of(4), 0U);
  EXPECT_EQ(stage_of(11), 1U);
  EXPECT_EQ(stage_of(1'000'000), 5U);
}

TEST(Examples, are_read_as_they_were_written) {
  const auto examples = recorded_examples();
  ASSERT_EQ(examples.size(), 730U);
  EXPECT_EQ(to_json_lines(examples), examples_text());
}

TEST(Examples, refuse_wrong_lines_and_name_them) {
  for (const std::string wrong : {"{}", "[]", "{\"end\":\"finished\",\"calls\":-1}",
                                  "{\"end\":\"lost\",\"calls\":1,\"stages\":[]}", "x"}) {
    const auto read = examples_from_json_lines("\n" + wrong + "\n");
    ASSERT_FALSE(read) << wrong;
    EXPECT_EQ(read.error().line, 2) << wrong;
  }
}

TEST(PredictionModel, is_the_same_for_the_same_examples) {
  const auto examples = recorded_examples();
  const auto text = to_json(train(examples));
  EXPECT_EQ(to_json(train(examples)), text);
  const auto read = model_from_json(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), text);
}

TEST(PredictionModel, damaged_files_are_refused_or_give_finite_predictions) {
  const auto examples = recorded_examples();
  const auto text = to_json(train(examples));
  constexpr unsigned seed = 7;
  std::cout << "seed " << seed << std::endl;
  std::mt19937 random(seed);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    auto damaged = text;
    for (int j = 0; j < 3; ++j)
      damaged[random() % damaged.size()] = "0123456789-eE{}[],:\"n"[random() % 21];
    const auto model = model_from_json(damaged);
    if (!model) {
      ++refused;
      EXPECT_FALSE(model.error().message.empty());
      continue;
    }
    const auto found = predict(*model, whole_run, *examples[0].stages[whole_run], "x");
    if (found) {
      EXPECT_TRUE(std::isfinite(found->score));
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_EQ(model_from_json(std::string(model_bytes_max + 1, ' ')).error().code,
            ErrorCode::exhausted);
  EXPECT_EQ(model_from_json("{\"version\":1}").error().code, ErrorCode::conflict);
  EXPECT_EQ(model_from_json("{\"version\":2,\"runs\":0,\"features\":[]}").error().code,
            ErrorCode::conflict);
}

TEST(Prediction, is_hidden_where_little_is_known) {
  PredictionModel model;
  auto& stage = model.stages[0];
  stage.runs = 100;
  stage.scale.fill(1);
  stage.blocks = {{.from = 0, .runs = 49, .unfinished = 0}};
  EXPECT_FALSE(predict(model, 0, Features{}, "")->worth_showing);
  stage.blocks = {{.from = 0, .runs = 212, .unfinished = 150}};
  const auto found = predict(model, 0, Features{}, "");
  EXPECT_TRUE(found->worth_showing);
  EXPECT_EQ(in_words(*found), "7 of 10 sessions that looked like this did not finish (212 seen)");
  EXPECT_FALSE(predict(model, 1, Features{}, "")) << "the stage was not trained";
}

TEST(Prediction, names_at_most_three_contributions) {
  PredictionModel model;
  auto& stage = model.stages[0];
  stage.runs = 100;
  stage.scale.fill(1);
  stage.weights.fill(0.5);
  Features features{};
  features.fill(1);
  EXPECT_EQ(contributions(model, 0, features).size(), 3U);
  EXPECT_TRUE(contributions(model, 0, Features{}).empty()) << "all are at their mean";
}

// docs/explanation/prediction.md has these numbers.
TEST(Prediction, reproduces_the_documented_measures) {
  const auto stages = measure(recorded_examples());
  const auto& twelve = *stages[2];
  EXPECT_EQ(twelve.runs, 272);
  EXPECT_NEAR(twelve.auroc.value, 0.723, 0.005);
  EXPECT_NEAR(twelve.auroc_agents.value, 0.690, 0.005);
  EXPECT_NEAR(twelve.within_agent->value, 0.563, 0.005);
  EXPECT_EQ(twelve.flagged_finished, 0);
  const auto& whole = *stages[whole_run];
  EXPECT_EQ(whole.runs, 693);
  EXPECT_NEAR(whole.auroc.value, 0.812, 0.005);
  EXPECT_NEAR(whole.ece.value, 0.041, 0.005);
  EXPECT_GE(whole.gain.value, 0.03);
  EXPECT_LE(100 * whole.flagged_finished, whole.finished);
}

TEST(Prediction, measures_of_runs_with_one_score_do_not_depend_on_their_order) {
  std::vector<Example> runs(180);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].agent = "a";
    runs[i].task = "task " + std::to_string(i);
    runs[i].end = i % 3 == 0 ? ExampleEnd::unfinished : ExampleEnd::finished;
    runs[i].stages[0] = Features{};
  }
  const auto measured = [](std::vector<Example> in_order) {
    const auto stages = measure(in_order);
    return stages[0] ? stages[0]->auprc.value : -1;
  };
  const auto by_end = [](bool unfinished_first) {
    return [unfinished_first](const Example& a, const Example& b) {
      return (a.end == ExampleEnd::unfinished) == unfinished_first && a.end != b.end;
    };
  };
  auto best = runs;
  std::ranges::stable_sort(best, by_end(true));
  auto worst = runs;
  std::ranges::stable_sort(worst, by_end(false));
  EXPECT_NEAR(measured(best), measured(worst), 1e-9);
  EXPECT_GT(measured(best), 0);
}

TEST(Prediction, trains_on_5000_runs_in_seconds) {
  const auto recorded = recorded_examples();
  std::vector<Example> many;
  const auto runs = static_cast<std::size_t>(test::repetitions(5'000, 1));
  for (int i = 0; many.size() < runs; ++i) {
    many.push_back(recorded[static_cast<std::size_t>(i) % recorded.size()]);
    many.back().task += std::to_string(i);
  }
  // Processor time: others use this machine, too.
  const auto seconds = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  const auto begin = seconds();
  const auto model = train(many);
  const auto trained = seconds();
  double sum = 0;
  constexpr int times = 100'000;
  for (int i = 0; i < times; ++i) {
    const auto& example = many[static_cast<std::size_t>(i) % many.size()];
    if (!example.stages[whole_run]) continue;
    sum += predict(model, whole_run, *example.stages[whole_run], example.agent)->score;
  }
  const auto predicted = seconds();
  std::cout << "training " << trained - begin << " s, a prediction "
            << (predicted - trained) / times * 1e6 << " us" << std::endl;
  EXPECT_TRUE(std::isfinite(sum));
  EXPECT_LT(trained - begin, 10);
  EXPECT_LT((predicted - trained) / times * 1e6, 5);
}

}  // namespace
}  // namespace watchdog
