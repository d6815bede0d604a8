"""What training leaves behind: the linear model, its file and exports, its ball and scaling."""
