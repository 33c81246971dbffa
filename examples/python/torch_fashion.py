"""The network of lightning_fashion.py and hugging_face_fashion.py, and its data."""
import torch

from fashion import images_and_labels


class Network(torch.nn.Module):
    def __init__(self):  # the names are those of torch_fashion.model
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 8, 3, padding="same")
        self.conv2 = torch.nn.Conv2d(8, 16, 3, padding="same")
        self.hidden = torch.nn.Linear(7 * 7 * 16, 48)
        self.logits = torch.nn.Linear(48, 10)

    def forward(self, images):
        functional = torch.nn.functional
        x = functional.max_pool2d(functional.relu(self.conv1(images)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        return self.logits(functional.relu(self.hidden(x.flatten(1))))


def training_data():
    """Images (count, 1, 28, 28) and labels."""
    images, labels = images_and_labels()
    return torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(labels)
