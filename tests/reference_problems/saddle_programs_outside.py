"""Saddle problems of DSP that are outside of the class of this library, with the reason."""

from reference_problems.entry import Outside

OUTSIDE = (
    Outside(
        "DSP test_weighted_log_sum_exp (the other 13 tests), test_aux_variable_in_constraints, "
        "test_semi_infinite_expr, test_multiple_dummies, test_nested_saddle, test_saddle_max",
        "log sum y_i exp(x_i)",
        "the coupling is not bilinear",
    ),
    Outside("DSP test_weighted_norm2 (6 tests)", "(sum y_i x_i^2)^(1/2)", "the coupling is not bilinear"),
    Outside(
        "DSP test_saddle_quad_form (4 tests), test_PSD_saddle, test_psd_exp",
        "x'Yx with Y positive semidefinite; spectral functions",
        "the coupling is not bilinear, and there is no app for the cone of semidefinite matrices",
    ),
    Outside(
        "DSP test_robust_constraint, test_robust_constraint_min, test_robust_constraint_inf, "
        "test_SE_variable_in_constraint",
        "a supremum inside a constraint",
        "only linear constraints; and the suprema are of log sum y_i exp(x_i)",
    ),
    Outside(
        "DSP example test_robust_bond, test_robust_bond_full",
        "min of sum h_i c_it exp(-t y_t) over yields inside a constraint",
        "neither bilinear nor a linear constraint",
    ),
    Outside(
        "DSP example test_robust_model_fitting",
        "min_t max_w sum w_i (a_i't - b_i)^2 + eta |t|_1",
        "w_i times a square is not bilinear, and its bilinear form v_i r_i - v_i^2/(4 w_i) is not smooth at w_i = 0",
    ),
    Outside("DSP test_by, abs", "-|y|", "a kink, which `ConstrainedGame` does not take; `sp.model` does, as norm1(y)"),
    Outside(
        "DSP test_ubounded_domains_exp, test_unbounded_domains_inv_pos",
        "-exp(x)'log(y), (1/x) y^0.01 on unbounded sets",
        "the infimum or supremum is not attained: there is no saddle point",
    ),
    Outside(
        "DSP test_saddle_inner_neg, test_overload_bilin, test_is_dsp, test_parser, test_minimizemaximize, "
        "test_cone_transforms and the rest",
        "what the language accepts and refuses",
        "nothing is solved",
    ),
)
