// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command lines of the verbs that only look at studies.

#include <functional>
#include <string>

#include "cli/verbs/view_verbs.hpp"

namespace CLI {
class App;
}

namespace ranktune::cli {

class ViewCommands {
  public:
    /// `verb` is set to what the parsed verb does; it must not outlive this object.
    explicit ViewCommands(std::function<int()>& verb) : verb_(verb) {}
    ViewCommands(const ViewCommands&) = delete;
    ViewCommands& operator=(const ViewCommands&) = delete;

    void add(CLI::App& app);

  private:
    void add_ls(CLI::App& app);
    void add_status(CLI::App& app);
    void add_best(CLI::App& app);
    void add_explain(CLI::App& app);
    void add_report(CLI::App& app);
    void add_compare(CLI::App& app);
    void add_serve(CLI::App& app);
    void add_logs(CLI::App& app);
    void add_export(CLI::App& app);
    void add_checkpoint(CLI::App& app);
    void add_note(CLI::App& app);
    void add_extend(CLI::App& app);

    std::function<int()>& verb_;
    std::string study_; ///< STUDY
    Format format_ = Format::text;
    std::string trial_;
    bool explain_records_ = false;
    ListArguments list_;
    StatusArguments status_;
    LogsArguments logs_;
    ReportArguments report_;
    CompareArguments compare_;
    ServeArguments serve_;
    ExportArguments export_;
    CheckpointArguments checkpoint_;
    NoteArguments note_;
    ExtendArguments extend_;
    std::string checkpoint_format_ = "safetensors";
};

} // namespace ranktune::cli
